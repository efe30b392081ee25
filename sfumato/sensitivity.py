"""Shared vocabulary: which data sets count as neighbours."""

from enum import Enum


class Relation(Enum):
    """When two data sets are neighbours. A guarantee about one relation says nothing about another.

    `AddRemove`: one has one person more. `ReplaceOne`: same size, one person's data differ.
    `Remove`, `Add`, `Replace` are one-way: the first data set of the pair is fixed to be the larger, the smaller,
    or either; they arise from looking at one direction of a loss.
    """

    AddRemove = "add/remove"
    ReplaceOne = "replace-one"
    Remove = "remove"
    Add = "add"
    Replace = "replace, one way"

    def __repr__(self) -> str:
        return self.name

    @property
    def one_way(self) -> bool:
        """Does an answer look at (P, Q) only, and not at (Q, P)?"""
        return self in (Relation.Remove, Relation.Add, Relation.Replace)

    @property
    def reversed(self) -> "Relation":
        """The relation of the pair read backwards."""
        return {Relation.Remove: Relation.Add, Relation.Add: Relation.Remove}.get(self, self)


AddRemove = Relation.AddRemove
ReplaceOne = Relation.ReplaceOne
