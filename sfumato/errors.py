"""The exceptions of sfumato, in one tree.

SfumatoError
├── InvalidParameter      a number or object outside its allowed range        (also a ValueError)
├── MixedRelations        two losses about different neighbours were combined (also a TypeError)
├── UnknownDescription    a JSON text that describes no known loss            (also a ValueError)
├── OutOfReach            no parameter meets the target asked for             (also a ValueError)
├── Exhausted             a mechanism has given all answers it was charged for (also a RuntimeError)
├── OneOfAKind            a state that must not exist twice was copied        (also a TypeError)
├── PolicyError           a policy that is wrong or incomplete                (also a ValueError)
├── QueryRefused          a question that is refused; never because of data   (also a ValueError)
│   ├── UnboundedColumn   it sums a column without bounds, for which the curator can find some
│   └── NotStored         only stored answers were asked for, and there is none
├── EngineUnavailable     the database cannot run the question; nothing was charged
├── AnswerFailed          a charged question that could not be answered
│   └── PostprocessingFailed  SQL over released values failed; these are stored, and further queries over them are free
├── TrainingFailed        the model or loss of a charged training run raised an error on the data (also a RuntimeError)
├── CheckpointFailed      a checkpoint of a training run was not written or not read (also an OSError)
├── NotReached            the price does not buy what was asked for; what it bought is in `answer`
├── AccessRefused         a service does not let this person do this now; nothing was charged
│   ├── NotAuthenticated  no token, or one that is unknown, expired or revoked
│   ├── NotAllowed        the role of the token does not include this act
│   └── TooManyRequests   more than a service takes of one person; `after` is when to try again
├── ServiceFailed         a service failed in a way that it was not made for; the text is always the same
└── LedgerError           a problem with a ledger; nothing was released
    ├── BudgetExceeded    the account does not cover the cost of a question
    ├── LedgerUnavailable the store cannot be reached or written
    │   └── CommitUnknown it is unknown whether a charge was committed: it counts as charged
    ├── LedgerDamaged     the ledger was changed or cut off, or is an old copy
    ├── KeyReused         an idempotency key was used again for another question   (also a ValueError)
    ├── QuestionBlocked   the engine failed on the question; the operator must act
    └── AlreadyRun        a charged question was already run twice

A message says what was asked, what was found and what to do. It never contains a value from private data.
"""


class SfumatoError(Exception):
    """The root of all errors that sfumato raises on purpose."""


class InvalidParameter(SfumatoError, ValueError):
    """A parameter is of the wrong type or out of its range."""


class MixedRelations(SfumatoError, TypeError):
    """Two losses about different neighbour relations were combined."""


class UnknownDescription(SfumatoError, ValueError):
    """A JSON text does not describe a loss that this version knows."""


class OutOfReach(SfumatoError, ValueError):
    """No allowed parameter meets the target."""


class Exhausted(SfumatoError, RuntimeError):
    """A mechanism that answers a limited number of questions has given its last answer."""


class OneOfAKind(SfumatoError, TypeError):
    """A state between answers was copied, pickled or used in a forked process, where it would answer twice."""


class LedgerError(SfumatoError):
    """A problem with a ledger. Nothing was released."""


class BudgetExceeded(LedgerError):
    """The account does not cover the cost of a question."""


class LedgerUnavailable(LedgerError):
    """The database that holds the ledger cannot be reached or written."""


class CommitUnknown(LedgerUnavailable):
    """It is unknown whether a charge was committed, so it counts as charged. Ask again with the same key."""


class LedgerDamaged(LedgerError):
    """A line of the ledger was changed or removed, or an old copy was put back."""


class KeyReused(LedgerError, ValueError):
    """An idempotency key was used again for another question."""


class AlreadyRun(LedgerError):
    """A charged question without a stored answer was already run twice."""


class QuestionBlocked(LedgerError):
    """The engine failed on this question. It is not run again until the operator acts. Nothing more was charged."""


class PolicyError(SfumatoError, ValueError):
    """A policy is wrong or incomplete."""


class QueryRefused(SfumatoError, ValueError):
    """A question is refused because of its text, the policy or the ledger. Never because of data.

    `place` is the character of the text that it is about, if there is one; `parts` are all problems of the text, if
    there are several.
    """

    place: int | None = None
    parts: "tuple[QueryRefused, ...]" = ()


class UnboundedColumn(QueryRefused):
    """A question sums values of a column that has no bounds; `Curator.ask` finds bounds for it, inside the price.

    `origin` is the column's lineage; `table` and `column` are its names in the policy, once they are known.
    """

    def __init__(self, words: str, origin: str, table: str = "", column: str = ""):
        super().__init__(words)
        self.origin, self.table, self.column = origin, table, column


class NotStored(QueryRefused):
    """Only stored answers were asked for (`Curator.stored_only`), and this question has none. Nothing was charged."""


class AccessRefused(SfumatoError):
    """A service does not let this person do this now. Nothing was charged."""


class NotAuthenticated(AccessRefused):
    """There is no token, or it is unknown, expired or revoked. Which of these is not said."""


class NotAllowed(AccessRefused):
    """The role of the token does not include this act."""


class TooManyRequests(AccessRefused):
    """More requests than a service takes, of one person or of all; `after` is the number of seconds to wait."""

    def __init__(self, words: str, after: float = 1.0):
        super().__init__(words)
        self.after = after


FAILED_SERVICE = "the service failed. The operator can read why in its log."


class ServiceFailed(SfumatoError):
    """A service failed in a way that it was not made for. The text is always the same; details are in its log."""


class NotReached(SfumatoError):
    """The price did not buy the relative error, or bounds of a column. What it did buy was charged, and is in
    `answer`."""

    def __init__(self, words: str, answer: object):
        super().__init__(words)
        self.answer = answer


class EngineUnavailable(SfumatoError):
    """The database cannot run the question: it is missing, has another version, or rejects a statement.

    Nothing was charged. Analysts always see the same text; details are in the operator's log.
    """


class AnswerFailed(SfumatoError):
    """A charged question could not be answered. The text is always the same; details are in the operator's log."""


class PostprocessingFailed(AnswerFailed):
    """SQL over released values failed or took too long. The values are stored: another query over them is free.

    The message is that of the engine. It depends on released and public values alone.
    """


class TrainingFailed(SfumatoError, RuntimeError):
    """The model, the loss or the data set of a charged run raised an error. It may show data, so it is left out."""


class CheckpointFailed(SfumatoError, OSError):
    """A checkpoint could not be written or read. The model, its charge and an earlier checkpoint are unchanged."""
