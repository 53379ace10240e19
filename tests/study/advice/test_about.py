from idiolect.data.audit import audit_lines
from idiolect.data.federated import FederatedData
from idiolect.study.advice.about import about_of


def test_it_counts_the_samples_and_labels_of_each_client(three_clients: FederatedData):
    about = about_of(three_clients)
    assert (about.name, about.task, about.clients) == (three_clients.name, "classification", ("c0", "c1", "c2"))
    assert about.num_clients == 3
    assert about.rows == 24 + 40 + 31
    assert list(about.validation) == three_clients.validation.sizes.tolist()
    assert [sum(row) for row in about.counts] == list(about.train)
    assert about.quantiles == ()
    assert list(about.audit) == audit_lines(three_clients)
