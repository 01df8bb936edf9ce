"""Random schemas and random walks through their masks. Usage: walks.py PROBE TOKENIZER [SCHEMAS [SEED]]

Each schema gets 20 walks, steered to an end. At least 95 % must end; every text that ended must be
valid by PyPI jsonschema; sampled valid values must be accepted. Also prints the times of the masks.
"""
import json
import sys

import jsonschema

from prober import Prober
from random_schemas import Schemas, spelled

WALKS = 20


def main():
    probe, tokenizer = sys.argv[1:3]
    count, seed = (int(arg) for arg in (sys.argv[3:] + ["500", "1"][len(sys.argv) - 3:])[:2])
    schemas = Schemas(seed)
    ended = begun = sampled = 0
    times, builds, failures = [], [], []
    with Prober(probe, tokenizer) as prober:
        for i in range(count):
            schema, values = schemas.next()
            jsonschema.Draft202012Validator.check_schema(schema)
            check = jsonschema.Draft202012Validator(schema)
            values = [value for value in values if check.is_valid(value)]
            answer = prober.ask({"kind": "json_schema", "text": json.dumps(schema), "walks": WALKS, "seed": seed + i,
                                 "texts": [spelled(value) for value in values]})
            if "code" in answer:
                failures.append(f"refused: {answer['message']}: {json.dumps(schema)}")
                continue
            begun += WALKS
            sampled += len(values)
            builds.append(answer["compile_us"])
            times += answer["mask_us"]
            failures += [f"not accepted: {spelled(value)}: {json.dumps(schema)}"
                         for value, taken in zip(values, answer["taken"]) if not taken]
            for text in answer["walks"]:
                if text is None:
                    continue
                ended += 1
                try:
                    valid = check.is_valid(json.loads(text))
                except ValueError:
                    valid = False
                if not valid:
                    failures.append(f"invalid: {text}: {json.dumps(schema)}")
    times.sort()
    builds.sort()
    print(f"{count} schemas, {begun} walks, {ended} ended ({100 * ended / max(begun, 1):.1f} %), {sampled} sampled "
          f"values; {len(failures)} failures (seed {seed})")
    print(f"masks: {len(times)}, mean {sum(times) / len(times):.1f} us, p50 {times[len(times) // 2]:.1f}, "
          f"p99 {times[len(times) * 99 // 100]:.1f}, max {times[-1]:.0f}")
    print(f"builds: p50 {builds[len(builds) // 2] / 1000:.1f} ms, p99 {builds[len(builds) * 99 // 100] / 1000:.1f}, "
          f"max {builds[-1] / 1000:.1f}")
    for failure in failures[:20]:
        print("FAILED:", failure)
    if failures or ended < 0.95 * begun:
        sys.exit(1)


if __name__ == "__main__":
    main()
