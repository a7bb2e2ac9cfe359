"""What an emulator may be made with: what it honours, and nothing else."""

from __future__ import annotations

import pytest

from emuredis.emulator import Emulator
from emuredis.engine.config import PARAMETERS, Parameter

FIRM = [parameter for parameter in PARAMETERS.values() if not parameter.choosable]
OTHER = {"no": "yes", "0": "1", "1": "2", "": "x", "noeviction": "allkeys-lru"}


@pytest.mark.parametrize("parameter", FIRM, ids=lambda parameter: parameter.name)
def test_a_setting_without_effect_is_refused(parameter: Parameter) -> None:
    usual = parameter.render(parameter.default)
    Emulator(config={parameter.name: usual})
    with pytest.raises(ValueError, match=f"does not support the configuration parameter {parameter.name}"):
        Emulator(config={parameter.name: OTHER[usual]})
