"""Decides which events to send as notices, and how often.

Each state of a subject is sent once. If the subject changes again soon after a notice, the next
notice waits; when the wait is over, the current state is sent, if it differs from the last one
sent. So the final state always arrives. A subject that flaps causes one notice, and another one
when it has settled (see `flaps`).
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hermes_doctor.core.model import Severity
from hermes_doctor.diagnosis.examination.check_threads import describe_crash
from hermes_doctor.operations.watch.channels import Channel, Notice, NotSent
from hermes_doctor.operations.watch.events import PRESENT, EventKind, Key, WatchEvent

QUIET = 600.0
"""Seconds between two notices about the same subject."""
MOST, HOUR = 20, 3600.0
"""Notices per hour; the others wait."""
WAITING = 200
FAREWELL = 10.0
"""Seconds that the last notices may take after the watch was told to stop."""
KEPT = 7 * 86400.0
FLAPPING = "flapping"
_LASTING = ("away", FLAPPING, *(severity.value for severity in Severity))
_ALWAYS = (EventKind.HEALED, EventKind.FAILED)


@dataclass
class Notices:
    """The notices of one watch, sent by one thread per channel.

    So no notice delays an examination, and a slow channel does not delay the others.
    """

    channels: Sequence[Channel]
    home: str
    threshold: Severity
    _pending: dict[Key, tuple[str, WatchEvent]] = field(default_factory=dict)
    _sent: deque[float] = field(default_factory=deque)
    _notes: deque[str] = field(default_factory=deque)
    _failing: set[str] = field(default_factory=set)
    _broken: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._queues: list[queue.Queue[Notice]] = [queue.Queue(WAITING) for _ in self.channels]
        self._works = False

    def observe(self, event: WatchEvent, notified: dict[Key, tuple[str, float]]) -> None:
        """Queue an event; `flush` decides whether and when it is sent."""
        topic, state = _topic(event)
        if event.muted:
            self._pending.pop(topic, None)
            if state == "gone":  # so that it is sent if it returns
                notified.pop(topic, None)
            return
        worst = event.worst
        if not state or not (worst is not None and worst.rank <= self.threshold.rank):
            return
        if event.kind is EventKind.UNMUTED:
            notified.pop(topic, None)
        flaps = notified.get(event.key, ("", 0.0))[0] == FLAPPING
        if event.kind is EventKind.HEALED and not flaps:  # the repair implies that it is gone
            self._pending.pop(event.key, None)
            notified[event.key] = ("gone", notified.get(event.key, ("", 0.0))[1])
        told = notified.get(topic)
        if state == "gone" and (told is None or told[0] == "gone"):
            self._pending.pop(topic, None)  # its presence was never sent
        elif told is not None and told[0] == state and event.kind is not EventKind.STABLE:
            self._pending.pop(topic, None)
        elif topic in self._pending or len(self._pending) < WAITING:
            self._pending[topic] = (state, event)

    def stand(self, subjects: frozenset[str]) -> None:
        """Set which subjects are broken: no notice goes through a platform among them."""
        self._broken = subjects

    def flush(self, notified: dict[Key, tuple[str, float]], now: float) -> list[WatchEvent]:
        """Send what is due; return events about failed notices."""
        while self._sent and not now - HOUR < self._sent[0] <= now:
            self._sent.popleft()
        for topic, (state, event) in list(self._pending.items()):
            _, at = notified.get(topic, ("", 0.0))
            rests = at and 0 <= now - at < QUIET
            if rests or len(self._sent) >= MOST:
                continue
            del self._pending[topic]
            self._sent.append(now)
            notified[topic] = (state, now)
            self._send(event)
        for topic, (state, at) in list(notified.items()):
            if state not in _LASTING and now - at > KEPT:
                del notified[topic]
        texts = [self._notes.popleft() for _ in range(len(self._notes))]
        return [WatchEvent(EventKind.NOTE, datetime.now(UTC), text) for text in texts]

    def close(self, timeout: float = FAREWELL) -> None:
        """Wait a moment for unsent notices."""
        end = time.monotonic() + timeout
        while any(one.unfinished_tasks for one in self._queues) and time.monotonic() < end:
            time.sleep(0.02)

    def _send(self, event: WatchEvent) -> None:
        if not self._works:
            self._works = True
            for one in zip(self.channels, self._queues, strict=True):
                threading.Thread(target=self._work, args=one, name="notices", daemon=True).start()
        for channel, waiting in zip(self.channels, self._queues, strict=True):
            try:
                waiting.put_nowait(Notice(event, self.home, self._broken))
            except queue.Full:
                text = f"{channel.name} is too slow; a notice was dropped"
                self._notes.append(text)

    def _work(self, channel: Channel, waiting: queue.Queue[Notice]) -> None:
        while True:
            notice = waiting.get()
            try:
                channel.send(notice)
                self._failing.discard(channel.name)
            except NotSent as why:
                self._complain(channel, str(why))
            except Exception as error:  # noqa: BLE001 (a notice must never end the watch)
                self._complain(channel, describe_crash(error))
            waiting.task_done()

    def _complain(self, channel: Channel, why: str) -> None:
        """Report once that a channel does not work."""
        if channel.name not in self._failing:
            self._failing.add(channel.name)
            self._notes.append(f"could not send a notice with {channel.name}: {why}")


def _topic(event: WatchEvent) -> tuple[Key, str]:
    """What the event is about, and the state of that topic after it."""
    if event.kind in PRESENT:
        return event.key, event.severity.value if event.severity else ""
    if event.kind is EventKind.FLAPS:
        return event.key, FLAPPING
    if event.kind is EventKind.STABLE:
        return event.key, event.severity.value if event.severity else "gone"
    if event.kind is EventKind.GONE:
        return event.key, "gone"
    if event.kind in (EventKind.AWAY, EventKind.BACK):
        return ("", "home"), "away" if event.kind is EventKind.AWAY else "gone"
    if event.kind in _ALWAYS or (event.kind is EventKind.HELD and event.severity):
        return (event.code, f"{event.subject} repair"), f"{event.kind} {event.at.isoformat()}"
    return ("", ""), ""
