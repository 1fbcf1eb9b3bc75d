"""`python -m transformist.bench CASE N`: one measurement, as JSON; what `processes` starts."""

import json
import sys

from transformist.errors import TransformistError


def main(case: str, n: str) -> int:
    """Print the measurement; 2 where it is refused."""
    from transformist.bench.measurement import measured

    try:
        print(json.dumps(measured(case, int(n))))
    except TransformistError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
