// Objects of the C library that hold facts.
#ifndef DSH_DETAIL_RECORD_HPP
#define DSH_DETAIL_RECORD_HPP

#include "call.hpp"

#include <utility>

namespace dsh::detail {

/// Owns an object of the C library, with what `read` says of it. What was moved from says nothing any more.
template <class Object, class Info, auto free, auto read> class Record {
public:
    static Expected<Record> of(Object* owned)
    {
        Record record(owned);
        auto info = detail::info<Info, Object>(read, owned);
        if (!info)
            return info.error();
        record.info_ = *info;
        return record;
    }

    Record(Record&& other) noexcept : handle_(std::move(other.handle_)), info_(std::exchange(other.info_, nothing())) {}
    Record& operator=(Record&& other) noexcept
    {
        // In this order, it also holds when both are the same.
        const Info info = std::exchange(other.info_, nothing());
        handle_ = std::move(other.handle_);
        info_ = info;
        return *this;
    }
    ~Record() = default;

    const Info* operator->() const noexcept { return &info_; }
    const Object* get() const noexcept { return handle_.get(); }

private:
    explicit Record(Object* owned) noexcept : handle_(owned), info_(nothing()) {}

    static Info nothing() noexcept { return dsh_init_value<Info>(); }

    Handle<Object, free> handle_;
    Info info_;
};

} // namespace dsh::detail

#endif
