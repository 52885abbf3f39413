// Ownership of what the C library gives.
#ifndef DSH_DETAIL_HANDLE_HPP
#define DSH_DETAIL_HANDLE_HPP

#include <memory>

namespace dsh::detail {

template <auto free> struct Freed {
    template <class Object> void operator()(Object* object) const noexcept { free(object); }
};

/// Owns an object of the C library, which `free` frees.
template <class Object, auto free> using Handle = std::unique_ptr<Object, Freed<free>>;

} // namespace dsh::detail

#endif
