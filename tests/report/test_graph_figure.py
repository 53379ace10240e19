"""The figure of a graph: what lies in its cells, what stands beside them, and what its caption says."""

import numpy as np
import pytest

from idiolect import graphs
from idiolect.core.errors import ConfigError
from idiolect.report.graph_figure import graph_figure, weights_of
from idiolect.report.style import REPORT, paper
from idiolect.report.view.recorded import recorded_graphs
from idiolect.study.store.recorded import graph_key, graph_of, related
from tests.report import stores


@pytest.fixture
def drawn(tmp_path):
    """Draw a fact as the run of a method would have recorded it."""
    results = stores.tied(tmp_path)
    cell = results.experiment.cells[0].model_copy(update={"methods": results.experiment.cells[0].methods[:1]})

    def figure(fact, **more):
        results.store.set_fact(graph_key("cell0", "fedu"), fact)
        return graph_figure(recorded_graphs(results, cell), **more)

    return figure


def test_a_cell_for_each_pair_and_a_dot_for_each_eigenvalue(drawn):
    ring = graphs.ring(5, weight=2.0)
    figure = drawn(graph_of(ring))
    left, right = figure.axes  # all weights are alike: no scale
    np.testing.assert_array_equal(np.nan_to_num(left.images[0].get_array().filled(0)), ring.adjacency().toarray())
    dots = right.lines[-1].get_xydata()
    np.testing.assert_allclose(dots, np.stack([np.arange(1, 6), ring.eigenvalues()], axis=1), atol=1e-4)
    assert left.get_title(loc="left") == "FedU: graph of the clients"
    (told,) = figure.told
    assert "Left: weights of the edges. Each is 2. Right: eigenvalues of the graph's Laplacian; one is zero" in told


def test_learned_relations_have_a_scale_that_diverges_from_zero(drawn):
    matrix = np.array([[1.0, -0.5, 0.2], [-0.5, 1.0, 0.0], [0.2, 0.0, 1.0]])
    left, right, scale = drawn(related(matrix)).axes
    image = left.images[0]
    assert image.get_clim() == (-0.5, 0.5)
    colours = image.cmap(image.norm([-0.5, 0.0, 0.5]))[:, :3]
    np.testing.assert_allclose(colours[1], 1, atol=0.01)  # 0 is white
    assert colours[0, 0] > colours[0, 2]  # red below
    assert colours[2, 0] < colours[2, 2]  # blue above
    assert np.isnan(image.get_array().filled(np.nan).diagonal()).all()
    np.testing.assert_allclose(right.lines[-1].get_ydata(), np.linalg.eigvalsh(matrix), atol=1e-4)
    assert scale.get_xlabel() == "relation"


def test_weights_that_differ_have_a_scale_from_zero(drawn):
    left, _, scale = drawn(graph_of(graphs.from_edges([(0, 1, 1.0), (1, 2, 3.0)], 3))).axes
    assert left.images[0].get_clim() == (0.0, 3.0)
    assert scale.get_xlabel() == "weight"


def test_names_where_there_is_room_else_numbers(drawn):
    def ticks(count, names, **more):
        axes = drawn(graph_of(graphs.ring(count)), names=names, **more).axes[0]
        return [label.get_text() for label in axes.get_yticklabels()], axes.get_ylabel()

    named = ["a clinic in the north", *"bcde"]
    assert ticks(5, named) == (["a clinic …", *"bcde"], "")
    assert ticks(5, named, style=paper(3.25)) == (["a clinic …", *"bcde"], "")
    assert ticks(5, named[:3])[1] == "client"  # only some clients are evaluated
    assert ticks(40, [f"c{i}" for i in range(40)])[1] == "client"


def test_panels_are_square_and_labels_lie_beside_them(tmp_path):
    results = stores.tied(tmp_path)
    found = recorded_graphs(results, results.experiment.cells[0])
    for graphs_, style in ((found, paper(3.25)), (found[1:], paper(3.25)), (found[1:], REPORT), (found, REPORT)):
        with style.applied():
            figure = graph_figure(graphs_, list("abcd"), style)
            figure.draw_without_rendering()
            panels = figure.axes[: 2 * len(graphs_)]
            for left, right in zip(panels[::2], panels[1::2], strict=True):
                box = left.get_window_extent()
                assert box.width == pytest.approx(box.height, rel=0.05)
                assert right.yaxis.label.get_window_extent().x0 > box.x1
                assert left.get_tightbbox().y1 <= figure.bbox.y1


def test_a_star_has_no_edge_between_clients(drawn):
    figure = drawn(graph_of(graphs.star(6)))
    assert figure.axes[0].texts[0].get_text() == "no edge between clients\neach is tied to the server"
    assert "There is none between clients; each is tied to the server. Right:" in figure.told[0]
    assert len(figure.axes[1].lines[-1].get_ydata()) == 7


def test_very_many_clients_share_cells_and_have_no_spectrum(drawn):
    fact = {**graph_of(graphs.ring(1001)), "eigenvalues": []}
    fact["edges"][0][2] = 9.0
    figure = drawn(fact)
    assert figure.axes[0].images[0].get_array().shape == (334, 334)
    assert figure.axes[0].images[0].get_array()[0, 0] == 9  # the largest of the cell
    assert not figure.axes[1].axison
    assert "A cell stands for 3 x 3 clients" in figure.told[0]
    assert "The spectrum of so many clients was not recorded." in figure.told[0]


def test_a_paper_has_no_title_but_for_several_graphs(tmp_path):
    results = stores.tied(tmp_path)
    found = recorded_graphs(results, results.experiment.cells[0])
    style = paper(3.25)
    with style.applied():
        assert graph_figure(found[:1], style=style).axes[0].get_title(loc="left") == ""
        both = graph_figure(found, style=style)
    assert both.get_figwidth() == 3.25
    assert [axes.get_title(loc="left") for axes in both.axes[:4:2]] == [
        "FedU: graph of the\nclients",
        "MOCHA: relations\nthat were learned",
    ]
    with pytest.raises(ConfigError, match="no graph among clients"):
        graph_figure([])


def test_a_weight_that_is_no_number_is_left_out():
    matrix = weights_of({"clients": 3, "edges": [[0, 1, None], [1, 2, -2.0]]})
    assert np.isnan(matrix[0, 1])
    assert matrix[1, 2] == matrix[2, 1] == -2
