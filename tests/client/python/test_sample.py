"""Tests that a sample that is merged from samples of parts is uniform over all rows, no matter how the rows are
divided into parts."""
import math

import numpy as np
import pandas
import pytest
import scipy.sparse

from phimap._sample import Sample, merge, sample_part

# The parts are uneven: some are smaller than the sample, some are empty.
PARTS = (0, 3, 50, 7, 200, 1, 0, 120)
ROWS = sum(PARTS)
SIZE = 40
SEEDS = 4000
# With probability exp(−LOG_CHANCE), a correct sample exceeds one of the thresholds. This is so small that a failure
# means a bug.
LOG_CHANCE = math.log(1e6)


def parts():
    ends = np.cumsum(PARTS)
    return [np.arange(end - count, end) for count, end in zip(PARTS, ends)]


def uniform(seed):
    return merge([sample_part(rows, place, SIZE, seed) for place, rows in enumerate(parts())], SIZE)


def in_two_steps(seed):
    samples = [sample_part(rows, place, SIZE, seed) for place, rows in enumerate(parts())]
    return merge([merge(samples[:3], SIZE), merge(samples[3:], SIZE)], SIZE)


def equal_weights(seed):
    """A deliberately wrong method: all sampled rows get the same weight, regardless of the size of their part."""
    samples = [sample_part(rows, place, SIZE, seed) for place, rows in enumerate(parts())]
    random = np.random.default_rng(seed)
    return merge([Sample(s.rows, random.integers(0, 1 << 63, len(s.keys), dtype=np.uint64), s.total_rows)
                  for s in samples], SIZE)


def proportional(seed):
    """Another deliberately wrong method: each part contributes exactly its rounded share of the sample. Each row then
    has the right probability, but the number of rows from a part does not vary as it should."""
    shares = [round(SIZE * count / ROWS) for count in PARTS]
    return merge([sample_part(rows, place, share, seed)
                  for place, (rows, share) in enumerate(zip(parts(), shares))], SIZE)


def chosen(method):
    """Returns a matrix of SEEDS × ROWS. An entry is 1 if the sample with that seed contains that row, and 0
    otherwise."""
    table = np.zeros((SEEDS, ROWS))
    for seed in range(SEEDS):
        table[seed, method(seed).rows] = 1
    return table


def rows_are_equally_likely(table):
    # Each row's indicator is 1 with p = SIZE/ROWS, and two rows have the covariance -p(1-p)/(ROWS-1). So the counts
    # over all seeds are about normal with covariance SEEDS·p(1-p)·ROWS/(ROWS-1)·(I - 11ᵀ/ROWS), and the statistic is
    # chi-square with k = ROWS-1. By Laurent and Massart 2000, Lemma 1, the statistic is above k+2√(kx)+2x with
    # probability at most exp(-x), and below k-2√(kx) with probability at most exp(-x).
    p, k = SIZE / ROWS, ROWS - 1
    statistic = k / ROWS * np.sum((table.sum(axis=0) - SEEDS * p) ** 2) / (SEEDS * p * (1 - p))
    spread = 2 * math.sqrt(k * LOG_CHANCE)
    return k - spread <= statistic <= k + spread + 2 * LOG_CHANCE


def parts_vary_as_they_should(table):
    # The number of rows drawn from a part has a hypergeometric distribution. If the part has the share q of all rows,
    # the variance is SIZE·q(1-q)(ROWS-SIZE)/(ROWS-1). Its squared deviations have a kurtosis of about 3, so their
    # mean over SEEDS deviates by √(2/SEEDS) (one sigma). The test allows six sigma.
    largest = PARTS.index(max(PARTS))
    begin = sum(PARTS[:largest])
    given = table[:, begin:begin + PARTS[largest]].sum(axis=1)
    q = PARTS[largest] / ROWS
    variance = SIZE * q * (1 - q) * (ROWS - SIZE) / (ROWS - 1)
    return abs(np.mean((given - SIZE * q) ** 2) / variance - 1) <= 6 * math.sqrt(2 / SEEDS)


@pytest.mark.parametrize("method", [uniform, in_two_steps])
def test_every_row_is_equally_likely_and_parts_vary(method):
    table = chosen(method)
    assert (table.sum(axis=1) == SIZE).all()
    assert rows_are_equally_likely(table)
    assert parts_vary_as_they_should(table)


def test_the_statistics_find_planted_mistakes():
    assert not rows_are_equally_likely(chosen(equal_weights))
    assert not parts_vary_as_they_should(chosen(proportional))


def test_merging_in_any_grouping_gives_the_same_rows():
    for seed in range(20):
        np.testing.assert_array_equal(uniform(seed).rows, in_two_steps(seed).rows)


def test_fewer_rows_than_asked_for_are_all_there():
    sample = merge([sample_part(rows, place, 1000, 0) for place, rows in enumerate(parts())], 1000)
    assert sorted(sample.rows) == list(range(ROWS))
    assert sample.total_rows == ROWS


def test_every_kind_of_rows_is_sampled_alike():
    numbers = [np.arange(10.0).reshape(5, 2), np.zeros((0, 2)), np.arange(10.0, 30.0).reshape(10, 2)]
    expected = merge([sample_part(rows, i, 4, 3) for i, rows in enumerate(numbers)], 4).rows

    def drawn(kind):
        return merge([sample_part(kind(rows), i, 4, 3) for i, rows in enumerate(numbers)], 4).rows

    np.testing.assert_array_equal(drawn(pandas.DataFrame).to_numpy(), expected)
    np.testing.assert_array_equal(drawn(scipy.sparse.csr_matrix).toarray(), expected)
    np.testing.assert_array_equal(drawn(lambda rows: iter(rows.tolist())), expected)
    assert drawn(lambda rows: [str(row[0]) for row in rows]) == [str(row[0]) for row in expected]
