"""What tokens cost."""

import pytest
from pydantic import ValidationError

from agent.message import Usage
from agent.models.price import Price

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("price", "usage", "dollars"),
    [
        (Price(input=3, output=15), Usage(), 0),
        (Price(input=3, output=15), Usage(MILLION, MILLION), 18),
        (Price(input=3, output=15), Usage(1000, 200), 0.006),
        # Usage counts tokens of a cache as input too; they are paid once.
        (Price(input=3, output=15), Usage(MILLION, 0, 400_000, 100_000), 3),
        (Price(input=3, output=15, cache_read=0.3), Usage(MILLION, 0, MILLION), 0.3),
        (Price(input=3, output=15, cache_write=3.75), Usage(MILLION, 0, 0, MILLION), 3.75),
        (Price(input=3, output=15, cache_read=0.3, cache_write=3.75), Usage(MILLION, 0, 400_000, 100_000), 1.995),
        (Price(input=3, output=15, cache_read=0, cache_write=0), Usage(MILLION, 0, 400_000, 100_000), 1.5),
        (Price(input=0, output=0), Usage(MILLION, MILLION, 5, 5), 0),
    ],
)
def test_the_cost_of_tokens(price: Price, usage: Usage, dollars: float) -> None:
    assert price.cost(usage) == pytest.approx(dollars)


def test_the_cost_of_a_sum_is_the_sum_of_costs() -> None:
    price = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
    one, two = Usage(5000, 70, 4000, 600), Usage(900, 11)
    assert price.cost(one + two) == pytest.approx(price.cost(one) + price.cost(two))


@pytest.mark.parametrize("wrong", [-1, True, "3", float("inf"), float("nan")])
def test_a_price_is_a_number_that_is_not_less_than_nothing(wrong: object) -> None:
    with pytest.raises(ValidationError):
        Price.model_validate({"input": wrong, "output": 1})
