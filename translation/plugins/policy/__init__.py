"""Which plugins objects may have where teams share gateways (`kubernetes.plugins: reviewed`), and what of them.

The tables say so, plugin by plugin and field by field; what they don't name is refused. Loaded only with the setting.
"""

from translation.plugins.policy.judge import judge
from translation.plugins.policy.table import COMMON, PLUGINS

__all__ = ["COMMON", "PLUGINS", "judge"]
