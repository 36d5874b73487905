"""Settings that no other source reads: ToS, RoCE version, congestion control. Read seldom, beside the scrape.

Most of them cost a firmware command per file, so they are looked at once a minute, from a thread of their own; a
scrape gets what was found last, and its age. Only the first look, by which a device becomes known, is waited for.
Where the files stand is written down in `configuration_files`.
"""

from __future__ import annotations

import errno
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roce_exporter.kernel import Absent
from roce_exporter.model import WHOLE_DEVICE, Reading
from roce_exporter.sources.configuration_files import look
from roce_exporter.sources.values import make_reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from roce_exporter.kernel import Kernel
    from roce_exporter.model import Device

CONFIGURATION = "configuration"

AGE = ("age",)
"""The name of the whole seconds since the values were read."""

INTERVAL = 60.0
"""Seconds between two looks."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found, and when it began (monotonic seconds)."""

    begun: float
    readings: tuple[Reading, ...] = ()
    error: OSError | None = None


def in_thread(work: Callable[[], None]) -> None:
    """Do this beside the caller. A daemon: a look that never comes back does not keep the process."""
    threading.Thread(target=work, name="roce-configuration", daemon=True).start()


class Configuration:
    """The settings of one device."""

    source = CONFIGURATION
    netdev = ""
    quarantined = 0

    def __init__(
        self, kernel: Kernel, device: Device, beside: Callable[[Callable[[], None]], None] = in_thread
    ) -> None:
        self._kernel = kernel
        self._device = device
        self._beside = beside
        self._last: Look | None = None
        self._looking = False

    def read(self, now: float) -> tuple[Reading, ...]:
        """What was found last, and how old it is.

        Raises:
            Absent: the host has none of these settings for the device.
            OSError: as the kernel says it.
        """
        if self._last is None:
            self._look(now)
        elif not self._looking and now - self._last.begun >= INTERVAL:
            self._looking = True
            self._beside(lambda: self._look(now))
        return self._told(now)

    def _look(self, now: float) -> None:
        # An error is kept and raised by whoever asks: in a thread nobody would hear it.
        names = () if self._last is None else tuple(reading.names for reading in self._last.readings)
        try:
            found = look(self._kernel, self._device)
            self._last = Look(now, tuple(self._readings(found, names)))
        except OSError as error:
            self._last = Look(now, error=error)
        finally:
            self._looking = False

    def _readings(
        self, found: dict[tuple[int, str], dict[str, int | str]], known: tuple[tuple[str, ...], ...]
    ) -> list[Reading]:
        readings = []
        for (port, netdev), values in found.items():
            names = tuple(values)
            # The same object for the same names, by which plans are found again.
            names = next((one for one in known if one == names), names)
            readings.append(
                make_reading(
                    CONFIGURATION, self._device.name, port, names, tuple(values.values()), netdev=netdev
                )
            )
        return readings

    def _told(self, now: float) -> tuple[Reading, ...]:
        last = self._last or Look(now)
        if last.error is not None:
            raise last.error
        if not last.readings:
            raise Absent(errno.ENOENT, "no settings in sysfs", self._device.name)
        age = Reading(CONFIGURATION, self._device.name, WHOLE_DEVICE, AGE, (int(now - last.begun),))
        return (*last.readings, age)

    def close(self) -> None:
        """Nothing is held."""
