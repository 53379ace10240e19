"""Each client's own boosted trees: a bar for federated methods on tables."""

from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Cohort, Start
from idiolect.algorithms.parts.bins import ROUNDS, Cells, counts_of, edges_of, no_cells, refined
from idiolect.algorithms.parts.boosting import Boosting, Model, Rows, rows_of, sums_of
from idiolect.algorithms.parts.private_trees import grown_alone
from idiolect.client.client import Client
from idiolect.client.predictor import Models


class Own(eqx.Module):
    """A client's private state: its rows in bins, and its trees so far."""

    rows: Rows
    model: Model


class LocalTrees(Boosting):
    """Local boosted trees: each client boosts its own trees from its own rows; nothing is sent.

        f_i <- f_i + rate tree,  tree fitted to gradients G and curvatures H of sum_j loss(f_i(x_ij) + b_i, y_ij)

    b_i is a constant with (mu / 2) |b_i|^2 as its penalty. Gain, leaves and best-first growth are those of
    `boosted-intercept`; the bins are those of the client's own quantiles. A client grows one tree per score in each
    round in which it takes part. A client with less than 2 min_rows rows has no trees, only b_i. The run's module is
    not used.

    The settings: see `Boosting`.

    Model: `local` is the client's trees and b_i. A new client grows its own in its rounds.

    Source: Friedman, "Greedy Function Approximation", Annals of Statistics 2001; Chen, Guestrin, "XGBoost", KDD
    2016, eq. 6-7; Ke et al., "LightGBM", NeurIPS 2017.
    """

    name: ClassVar[str] = "local-trees"
    title: ClassVar[str] = "Local boosted trees"
    summary: ClassVar[str] = "every client boosts its own trees, no communication"
    source: ClassVar[str] = "Friedman 2001; Chen, Guestrin, KDD 2016; Ke et al., NeurIPS 2017"
    model_names: ClassVar[tuple[str, ...]] = ("local",)
    sends: ClassVar[bool] = False
    settling: ClassVar[int] = 20

    def init(self, start: Start, key: PRNGKeyArray) -> None:
        """The server keeps nothing."""
        del start, key

    def init_private(self, start: Start, key: PRNGKeyArray) -> Own:
        """No bins and no trees."""
        del key
        return Own(self.first_rows(start), self.first_model(start, 1))

    def local(self, view: None, private: Own, client: Client, key: PRNGKeyArray) -> tuple[None, Own]:
        """No message; the private state with one more tree per score."""
        del key
        own = self.prepared(private, client)

        sums = sums_of(self.loss_of(client), own.rows.scores + own.rows.intercept, self.batch_of(own.rows, client))
        more = own.model.done < self.trees
        table = grown_alone(own.rows.bins, sums, self.rules, self.leaves, self.bins, more, own.model.categories)
        model = self.finished(own.model, table)
        return None, Own(self.advanced(model, own.rows, client), model)

    def prepared(self, own: Own, client: Client) -> Own:
        """The state with the client's own bins."""

        def bins(own: Own) -> Own:
            batch = self.batch_of(own.rows, client)
            x = rows_of(batch)

            def finer(round: Array, cells: Cells) -> Cells:
                return refined(cells, round, counts_of(cells, round, x, batch.weight))

            cells = jax.lax.fori_loop(0, ROUNDS, finer, no_cells(x.shape[1], self.bins))
            model = eqx.tree_at(lambda m: m.edges, own.model, edges_of(cells))
            return Own(self.advanced(model, own.rows, client), model)

        return jax.lax.while_loop(lambda o: ~o.rows.ready, bins, own)

    def aggregate(self, shared: None, cohort: Cohort, messages: None) -> None:
        """Nothing arrives, nothing changes."""

    def models(self, view: PyTree, private: Own, client: Client, key: PRNGKeyArray) -> Models:
        """local: the client's own trees."""
        del view, key
        own = self.prepared(private, client)
        return {"local": self.forest(own.model, own.rows, client)}
