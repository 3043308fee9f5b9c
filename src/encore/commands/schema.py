"""``encore schema``: the JSON schema of a run's configuration."""

import argparse
import json


def answer(arguments: argparse.Namespace) -> int:
    """The schema that ``config/schema.json`` holds, for editors."""
    from encore.config.run import RunConfig

    print(json.dumps(RunConfig.model_json_schema(), indent=1, sort_keys=True))
    return 0
