// The library's handles as owners that free them.
#pragma once

#include <dsh.h>

#include <memory>

namespace dsh_node {

template <auto Free> struct Freed {
    template <class Handle> void operator()(Handle *handle) const noexcept
    {
        Free(handle);
    }
};

using OwnedCancel = std::unique_ptr<dsh_cancel_t, Freed<dsh_cancel_free>>;
using OwnedChunk = std::unique_ptr<dsh_chunk_t, Freed<dsh_chunk_free>>;
using OwnedDoctor = std::unique_ptr<dsh_doctor_t, Freed<dsh_doctor_free>>;
using OwnedError = std::unique_ptr<dsh_error_t, Freed<dsh_error_free>>;
using OwnedExecutor = std::unique_ptr<dsh_executor_t, Freed<dsh_executor_free>>;
using OwnedProcess = std::unique_ptr<dsh_process_t, Freed<dsh_process_free>>;
using OwnedResult = std::unique_ptr<dsh_result_t, Freed<dsh_result_free>>;
using OwnedSettings = std::unique_ptr<dsh_settings_t, Freed<dsh_settings_free>>;
using OwnedSpec = std::unique_ptr<dsh_spec_t, Freed<dsh_spec_free>>;

// An out-parameter for an owner: `Out(owner)` where the library wants `Handle **`.
template <class Owner> class Out {
  public:
    explicit Out(Owner &owner) noexcept : owner_(owner) {}
    Out(const Out &) = delete;
    Out &operator=(const Out &) = delete;
    ~Out()
    {
        owner_.reset(handle_);
    }
    operator typename Owner::element_type **() noexcept
    {
        return &handle_;
    }

  private:
    Owner &owner_;
    typename Owner::element_type *handle_ = nullptr;
};

} // namespace dsh_node
