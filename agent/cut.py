"""The words of the cut-answer rule: one fixed note, for crash, broken stream, drain and the limit of output."""

CUT_NOTE = "Your reply was cut off. The text above has been delivered. Go on from there; repeat nothing."
UNSAID_NOTE = (
    "Your reply reached the limit of output before it said anything, and no call in it was executed. "
    "Think less, say it more briefly, or do it in smaller steps."
)
INTERRUPTED = "Interrupted: the outcome of this call is unknown. It was not repeated."
NOT_EXECUTED = "Not executed: the run was stopped before this call."
