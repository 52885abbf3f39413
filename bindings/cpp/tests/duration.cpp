// Spans of time in options.
#include "check.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>

using namespace std::chrono_literals;
using dsh::Duration;

namespace {

using Seconds = std::chrono::duration<double>;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

} // namespace

TEST("any duration is one in whole milliseconds")
{
    static_assert(Duration(5s).count() == 5000);
    static_assert(Duration(2h) == 7200s);
    EQUAL(Duration(0ms).count(), 0);
    EQUAL(Duration(Seconds(1.5)).count(), 1500);
    EQUAL(Duration(std::chrono::duration<int, std::ratio<1, 3>>(1)).count(), 334);
}

TEST("a fraction of a millisecond counts as a whole one")
{
    EQUAL(Duration(1ns).count(), 1);
    EQUAL(Duration(1001us).count(), 2);
    EQUAL(Duration(3000us).count(), 3);
    EQUAL(Duration(Seconds(0.0000001)).count(), 1);
    EQUAL(Duration(-1us).count(), -1);
    EQUAL(Duration(Seconds(-0.0015)).count(), -2);
}

TEST("what is too long is the longest, and never wraps")
{
    EQUAL(Duration(std::chrono::hours::max()).count(), most);
    EQUAL(Duration(std::chrono::milliseconds::max()).count(), most);
    EQUAL(Duration(std::chrono::duration<std::uint64_t, std::milli>(~std::uint64_t{0})).count(), most);
    EQUAL(Duration(std::chrono::duration<std::uint64_t, std::milli>(std::uint64_t{1} << 63)).count(), most);
    EQUAL(Duration(Seconds(1e300)).count(), most);
    EQUAL(Duration(Seconds(std::numeric_limits<double>::infinity())).count(), most);
    EQUAL(Duration(std::chrono::hours::min()).count(), -most);
    EQUAL(Duration(Seconds(-std::numeric_limits<double>::infinity())).count(), -most);
    EQUAL(Duration(std::chrono::nanoseconds::max()).count(), most / 1000000 + 1);
}

TEST("what is not a number is told apart")
{
    const Duration nan(Seconds{std::numeric_limits<double>::quiet_NaN()});
    CHECK(!nan.is_number());
    CHECK(nan != nan);
    CHECK(Duration(std::chrono::milliseconds::min()).is_number());
    CHECK(Duration(1ms).is_number());
}

TEST("durations are compared with those of the standard library")
{
    CHECK(Duration(1s) == 1000ms);
    CHECK(Duration(1s) != 1001ms);
}
