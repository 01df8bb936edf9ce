"""How late tokens come against the schedule of `serve --scripted-engine`, from the file of
`bench serve --save-detailed`."""

import json


def percentile(values, fraction):
    """The smallest value that at least this fraction of all values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(fraction * 1e6) * len(ordered) // 10**6) - 1)]


def read(path, tokens_per_s):
    """(requests served, pieces of each, seconds by which each piece was late, seconds that each
    request took to arrive).

    Token i is due (i + 1) / tokens_per_s after its request arrived. When that was, the token that
    came soonest against this schedule tells, to within the time that one event takes at best."""
    served, pieces, late, arrivals = 0, [], [], []
    with open(path, encoding="utf-8") as file:
        next(file)  # of the run as a whole
        for line in file:
            request = json.loads(line)
            served += request["status"] == 200 and request["error"] == ""
            starts = [t - (i + 1) / tokens_per_s for i, t in enumerate(request["piece_s"])]
            pieces.append(len(starts))
            late += [start - min(starts) for start in starts]
            arrivals += [min(starts) - request["sent_s"]] if starts else []
    return served, pieces, late, arrivals
