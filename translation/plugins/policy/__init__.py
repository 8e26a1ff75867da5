"""The plugins and fields that objects may use with `kubernetes.plugins: reviewed`.

The tables list plugins and their fields; everything else is rejected. Loaded only with that setting.
"""

from translation.plugins.policy.judge import judge
from translation.plugins.policy.table import COMMON, PLUGINS

__all__ = ["COMMON", "PLUGINS", "judge"]
