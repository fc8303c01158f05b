"""The words of the cut-answer rule (design.md, promise 2): one fixed note, for crash, broken stream and drain."""

CUT_NOTE = "Your reply was cut off. The text above has been delivered. Go on from there; repeat nothing."
INTERRUPTED = "Interrupted: the outcome of this call is unknown. It was not repeated."
NOT_EXECUTED = "Not executed: the run was stopped before this call."
