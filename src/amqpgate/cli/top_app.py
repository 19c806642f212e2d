"""``amqpgate top`` where one stays in it (Textual): sort, filter, look into a session, tap it, close it;
denials, and why. Keys alone; what is asked of the gateway is asked in threads."""

from __future__ import annotations

from amqpgate.cli.top_keys import OrderedKeys
from amqpgate.cli.top_sessions import SessionsScreen
from amqpgate.cli.watching import WatchedGateway


class TopApp(OrderedKeys):
    """All of it."""

    TITLE = "amqpgate top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: auto; max-height: 5; padding: 0 1 }
    #said { height: auto; max-height: 3; padding: 0 1 }
    #text, #what { padding: 0 1 }
    #sure { margin: 1 0 }
    KeptTable, RichLog, VerticalScroll { height: 1fr }
    .hidden { display: none }
    ModalScreen { align: center middle }
    .question { width: 70; max-width: 100%; height: 18; max-height: 100% }
    .question { padding: 1 2; border: round $accent; background: $surface }
    .question OptionList { height: 1fr }
    """

    def __init__(self, gateway: WatchedGateway, every: float, sort: str) -> None:
        super().__init__()
        self.gateway, self.every, self.order = gateway, every, sort

    def on_mount(self) -> None:
        self.push_screen(SessionsScreen(self.gateway, self.every, self.order))
