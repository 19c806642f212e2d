"""The rules on proxies."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.proxy.between import ProxySection
from amqpgate.conformance.proxy.cases.contents import CONTENTS
from amqpgate.conformance.proxy.cases.endings import ENDINGS
from amqpgate.conformance.proxy.cases.handshakes import HANDSHAKES
from amqpgate.conformance.proxy.cases.methods import METHODS

PROXY_SECTIONS: Final[tuple[ProxySection, ...]] = (HANDSHAKES, METHODS, CONTENTS, ENDINGS)
