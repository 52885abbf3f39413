// Cancel tokens.
#ifndef DSH_CANCEL_HPP
#define DSH_CANCEL_HPP

#include "detail/call.hpp"

#include <cstdint>

namespace dsh {

/// A switch that ends commands: thrown once, for any number of requests, from any thread. Destroying it cancels
/// nothing: commands that run with it go on, and can no longer be cancelled by it.
class CancelToken {
public:
#if DSH_EXCEPTIONS
    /// A token that has not been cancelled.
    CancelToken() : CancelToken(try_make().value()) {}

    /// Ends every command that runs with this token, as Process::kill() does; every one that will be asked to is
    /// refused with ErrorCode::cancelled. Once is enough; again does nothing. Any thread; does not wait for the
    /// commands to end.
    void cancel() const { try_cancel().value(); }

    /// Whether the token has been cancelled. Any thread; does not block.
    [[nodiscard]] bool cancelled() const { return try_cancelled().value(); }
#endif

    /// Makes a token, without exceptions.
    static Expected<CancelToken> try_make()
    {
        dsh_cancel_t* cancel = nullptr;
        if (auto called = detail::call(dsh_cancel_new, &cancel); !called)
            return called.error();
        return CancelToken(cancel);
    }

    /// As cancel(), without exceptions.
    Expected<void> try_cancel() const { return detail::call(dsh_cancel, native_handle()); }

    /// As cancelled(), without exceptions.
    Expected<bool> try_cancelled() const
    {
        std::uint32_t cancelled = 0;
        if (auto called = detail::call(dsh_is_cancelled, native_handle(), &cancelled); !called)
            return called.error();
        return cancelled != 0;
    }

    /// The handle of the C interface, which stays this object's; null after a move.
    [[nodiscard]] const dsh_cancel_t* native_handle() const noexcept { return handle_.get(); }

private:
    explicit CancelToken(dsh_cancel_t* handle) noexcept : handle_(handle) {}

    detail::Handle<dsh_cancel_t, dsh_cancel_free> handle_;
};

} // namespace dsh

#endif
