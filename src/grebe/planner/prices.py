"""What reading costs where requests and bytes are paid for."""

from dataclasses import dataclass

from grebe.config import Config

_THOUSAND = 1000
_GIGABYTE = 1e9


@dataclass(frozen=True, slots=True)
class Prices:
    """By default what S3 asks for GET requests in its home region, where bytes themselves are free; in dollars."""

    thousand_requests: float = 0.0004
    gigabyte: float = 0.0
    core_hour: float = 0.05
    """What a core costs that works for an hour."""

    @staticmethod
    def of_settings(config: Config) -> "Prices":
        return Prices(config.price_thousand_requests, config.price_gigabyte, config.price_core_hour)

    def of(self, requests: int, size: int) -> float:
        return requests / _THOUSAND * self.thousand_requests + size / _GIGABYTE * self.gigabyte


def money(amount: float) -> str:
    """For people: as many digits as tell something."""
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.2g}"
