"""mmFL: a cluster for each modality, encoders and decoders trained in turn, step sizes that each client chooses."""

from typing import ClassVar

from idiolect.algorithms.parts.modality_clusters import ModalityClusters


class MmFL(ModalityClusters):
    """mmFL: federated averaging inside each modality, with encoder and decoder steps whose size each client chooses.

    A round of client n in modality m, from the server's theta = (encoder, decoder) of m (steps 1 to 8):
        d: meta_size of its training samples. For each candidate eta_i, from theta:
            T_temp times: theta_temp <- theta_temp - eta_i grad F(theta_temp, d)                    (1)
        alpha = the eta_i with the least F(theta_temp, d)                                          (2) to (4)
        T times, on a mini-batch:
            encoder <- encoder - alpha grad_encoder F(encoder, decoder)                              (5)
            decoder <- decoder - alpha grad_decoder F(encoder, decoder), at the new encoder          (6)
    The server: theta^m <- (1/N^m) sum_n theta_n^m over the clients that have m                      (8)

    rates: the eta_i. meta_size: samples of d. meta_steps: T_temp. local_steps: T. batch_size: of a mini-batch.

    For these and the other settings, and for clients that do not have all modalities, see `ModalityClusters`. A
    fusion head of the model is not used, see `MmFLFusion`.

    Models: `global` is the fused prediction of all theta^m; `personal` that of the client's own theta_n^m after its T
    steps from them; each modality m has `m` and `personal m`, the latter what eq. (7) evaluates.

    Source: Rahman, Nguyen, "Multimodal Federated Learning with Model Personalization", 2024, steps 1 to 10.
    """

    name: ClassVar[str] = "mmfl"
    title: ClassVar[str] = "mmFL"
    summary: ClassVar[str] = "a cluster for each modality; encoder, then decoder steps; clients choose their rate"
    source: ClassVar[str] = "Rahman, Nguyen, 2024, eqs. (1) to (8)"
    model_names: ClassVar[tuple[str, ...]] = ("global", "personal")
