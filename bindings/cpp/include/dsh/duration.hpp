// Spans of time in options.
#ifndef DSH_DURATION_HPP
#define DSH_DURATION_HPP

#include <chrono>
#include <cstdint>

namespace dsh {

/// A span of time in whole milliseconds, made from any `std::chrono` duration without ever wrapping: a fraction of a
/// millisecond counts as a whole one, and what is too long (`hours::max()`, infinity) becomes the longest.
///
/// A negative span and one that is not a number can be held, and are refused by the call that they are given to.
class Duration {
public:
    /// Takes any duration: `5s`, `250ms`, `std::chrono::duration<double>(1.5)`.
    template <class Rep, class Period> constexpr Duration(std::chrono::duration<Rep, Period> time) noexcept
        : time_(rounded(time))
    {
    }

    /// The span; `std::chrono::milliseconds::max()` when it was too long, and `min()` when it was not a number.
    [[nodiscard]] constexpr std::chrono::milliseconds milliseconds() const noexcept { return time_; }

    /// How many milliseconds that are.
    [[nodiscard]] constexpr std::int64_t count() const noexcept { return time_.count(); }

    /// Whether it is a number at all.
    [[nodiscard]] constexpr bool is_number() const noexcept { return time_ != not_a_number; }

    /// Whether both are as long. What is not a number is equal to nothing.
    [[nodiscard]] friend constexpr bool operator==(Duration left, Duration right) noexcept
    {
        return left.is_number() && left.time_ == right.time_;
    }
    [[nodiscard]] friend constexpr bool operator!=(Duration left, Duration right) noexcept { return !(left == right); }

private:
    static constexpr std::chrono::milliseconds not_a_number = std::chrono::milliseconds::min();
    static constexpr std::chrono::milliseconds longest = std::chrono::milliseconds::max();

    template <class Rep, class Period>
    static constexpr std::chrono::milliseconds rounded(std::chrono::duration<Rep, Period> time) noexcept
    {
        using Exact = std::chrono::duration<long double, std::milli>;
        const Exact exact(time);
        if (exact != exact)
            return not_a_number;
        if (exact >= Exact(longest))
            return longest;
        if (exact <= -Exact(longest))
            return -longest;
        if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
            const std::chrono::milliseconds whole(static_cast<std::int64_t>(exact.count()));
            if (Exact(whole) == exact)
                return whole;
            return whole + std::chrono::milliseconds(exact < Exact::zero() ? -1 : 1);
        } else {
            return exact < Exact::zero() ? std::chrono::floor<std::chrono::milliseconds>(time)
                                         : std::chrono::ceil<std::chrono::milliseconds>(time);
        }
    }

    std::chrono::milliseconds time_;
};

} // namespace dsh

#endif
