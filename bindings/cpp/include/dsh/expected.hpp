// A value or the reason why there is none.
#ifndef DSH_EXPECTED_HPP
#define DSH_EXPECTED_HPP

#include "error.hpp"

#include <cassert>
#include <optional>
#include <utility>
#include <variant>

// Whether the functions that throw are there: as the compiler says. All units of a program should be compiled alike.
#if defined(__cpp_exceptions)
#define DSH_EXCEPTIONS 1
#else
#define DSH_EXCEPTIONS 0
#endif

namespace dsh {

/// A value, or the Error why there is none: what the functions without exceptions give. In the manner of C++23's
/// `std::expected<T, dsh::Error>`, but `value()` throws the error itself.
template <class T> class [[nodiscard]] Expected {
public:
    /// Holds a value.
    Expected(T value) : content_(std::in_place_index<0>, std::move(value)) {}

    /// Holds an error.
    Expected(Error error) noexcept : content_(std::in_place_index<1>, std::move(error)) {}

    /// Whether there is a value.
    [[nodiscard]] bool has_value() const noexcept { return content_.index() == 0; }

    /// Whether there is a value: of an `Expected<bool>`, not which.
    explicit operator bool() const noexcept { return has_value(); }

    /// The value, which must be there.
    [[nodiscard]] T& operator*() & noexcept { return *held(); }
    [[nodiscard]] const T& operator*() const& noexcept { return *held(); }
    [[nodiscard]] T&& operator*() && noexcept { return std::move(*held()); }
    [[nodiscard]] T* operator->() noexcept { return held(); }
    [[nodiscard]] const T* operator->() const noexcept { return held(); }

    /// The error, which must be there.
    [[nodiscard]] const Error& error() const noexcept
    {
        assert(!has_value());
        return *std::get_if<1>(&content_);
    }

    /// The value, or this one.
    template <class U> [[nodiscard]] T value_or(U&& other) &&
    {
        return has_value() ? std::move(**this) : static_cast<T>(std::forward<U>(other));
    }

#if DSH_EXCEPTIONS
    /// The value; throws the error when there is none.
    T& value() &
    {
        check();
        return **this;
    }
    const T& value() const&
    {
        check();
        return **this;
    }
    T&& value() &&
    {
        check();
        return std::move(**this);
    }
#endif

private:
    T* held() noexcept
    {
        assert(has_value());
        return std::get_if<0>(&content_);
    }
    const T* held() const noexcept
    {
        assert(has_value());
        return std::get_if<0>(&content_);
    }

#if DSH_EXCEPTIONS
    void check() const
    {
        if (!has_value())
            throw error();
    }
#endif

    std::variant<T, Error> content_;
};

/// Success, or the Error why not.
template <> class [[nodiscard]] Expected<void> {
public:
    /// Success.
    Expected() noexcept = default;

    /// Holds an error.
    Expected(Error error) noexcept : error_(std::move(error)) {}

    /// Whether it succeeded.
    [[nodiscard]] bool has_value() const noexcept { return !error_.has_value(); }

    /// Whether it succeeded.
    explicit operator bool() const noexcept { return has_value(); }

    /// The error, which must be there.
    [[nodiscard]] const Error& error() const noexcept
    {
        assert(!has_value());
        return *error_;
    }

#if DSH_EXCEPTIONS
    /// Throws the error when there is one.
    void value() const
    {
        if (!has_value())
            throw error();
    }
#endif

private:
    std::optional<Error> error_;
};

} // namespace dsh

#endif
