"""Internal: CMU-MOSEI and CMU-MOSI, utterances of videos."""
