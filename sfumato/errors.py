"""Every error sfumato raises, in one tree.

SfumatoError
├── InvalidParameter      a number or object outside its allowed range        (also a ValueError)
├── MixedRelations        two losses about different neighbours were combined (also a TypeError)
├── UnknownDescription    a text that describes no loss of this version       (also a ValueError)
├── OutOfReach            no parameter meets the target asked for             (also a ValueError)
├── Exhausted             all answers that were paid for have been given      (also a RuntimeError)
├── OneOfAKind            a state that must not exist twice was to be copied  (also a TypeError)
├── PolicyError           a policy that makes no sense, or says too little      (also a ValueError)
├── QueryRefused          a question that is not answered; never because of data (also a ValueError)
├── EngineUnavailable     the database cannot be asked now; found before the charge, and nothing is charged
├── AnswerFailed          a charged question that could not be answered
├── NotReached            a relative error that the price given does not buy; what was bought is in `answer`
└── LedgerError           something about a ledger; nothing is released
    ├── BudgetExceeded    the account does not hold what a question costs
    ├── LedgerUnavailable the store does not answer, or cannot write
    │   └── CommitUnknown a charge may or may not be committed: it counts as charged
    ├── LedgerDamaged     changed, cut off, or an old copy
    ├── KeyReused         a request key came back with another question       (also a ValueError)
    ├── QuestionBlocked   the engine failed on a question; the operator must act
    └── AlreadyRun        a charged question was run twice and never stored

A message says what was asked, what was found and what to do. It never holds a value from private data.
"""


class SfumatoError(Exception):
    """The root: catch this to catch everything sfumato raises on purpose."""


class InvalidParameter(SfumatoError, ValueError):
    """A parameter is of the wrong type or out of its range."""


class MixedRelations(SfumatoError, TypeError):
    """Two losses that speak of different neighbouring data sets were combined."""


class UnknownDescription(SfumatoError, ValueError):
    """A JSON text does not describe a loss that this version knows."""


class OutOfReach(SfumatoError, ValueError):
    """A target that no allowed parameter can meet."""


class Exhausted(SfumatoError, RuntimeError):
    """A stream of answers has come to its end."""


class OneOfAKind(SfumatoError, TypeError):
    """A state between answers was copied, pickled or taken to another process, where it would answer twice."""


class LedgerError(SfumatoError):
    """Something about a ledger: nothing is released."""


class BudgetExceeded(LedgerError):
    """The account does not hold what a question costs."""


class LedgerUnavailable(LedgerError):
    """The place where the ledger is kept does not answer, or cannot write."""


class CommitUnknown(LedgerUnavailable):
    """It cannot be said whether a charge was committed; it counts as charged. Ask again with the same key."""


class LedgerDamaged(LedgerError):
    """The ledger is not what it was: a line was changed, removed, or an old copy was put back."""


class KeyReused(LedgerError, ValueError):
    """A request key came back with another question."""


class AlreadyRun(LedgerError):
    """A charged question without a stored answer has been run twice already."""


class QuestionBlocked(LedgerError):
    """The engine failed on this question, so it is not run again until the operator acts. Nothing more is charged."""


class PolicyError(SfumatoError, ValueError):
    """A policy that makes no sense, or says too little."""


class QueryRefused(SfumatoError, ValueError):
    """A question that is not answered, for reasons that the text, the policy or the ledger give. Never data."""


class NotReached(SfumatoError):
    """A relative error was not reached. What was released on the way is paid for, and is here: `answer`."""

    def __init__(self, words: str, answer: object):
        super().__init__(words)
        self.answer = answer


class EngineUnavailable(SfumatoError):
    """The database cannot be asked: it is not there, its version is another, or it refuses a statement. Nothing is
    charged. What analysts read is always the same; details are in the operator's log."""


class AnswerFailed(SfumatoError):
    """A charged question could not be answered. The text is always the same; details are in the operator's log."""
