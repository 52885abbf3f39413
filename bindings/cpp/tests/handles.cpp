// Ownership: what can be done with handles, and that they leave nothing behind.
#include "check.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

template <class Handle> constexpr bool is_handle =
    !std::is_copy_constructible_v<Handle> && !std::is_copy_assignable_v<Handle> &&
    std::is_nothrow_move_constructible_v<Handle> && std::is_nothrow_move_assignable_v<Handle>;

static_assert(is_handle<dsh::Executor>);
static_assert(is_handle<dsh::Process>);
static_assert(is_handle<dsh::CancelToken>);
static_assert(is_handle<dsh::Result>);
static_assert(is_handle<dsh::Chunk>);
static_assert(is_handle<dsh::Spec>);

// No state of its own: what is bound adds nothing to the pointer that it owns.
static_assert(sizeof(dsh::Executor) == sizeof(void*));
static_assert(sizeof(dsh::Process) == sizeof(void*));
static_assert(sizeof(dsh::CancelToken) == sizeof(void*));

// Views can be read of a handle that stays, and not of a temporary one, with which they would be gone.
template <class Handle, class = void> constexpr bool gives_out = false;
template <class Handle> constexpr bool gives_out<Handle, std::void_t<decltype(std::declval<Handle>().out())>> = true;
static_assert(gives_out<dsh::Result&> && gives_out<const dsh::Result&>);
static_assert(!gives_out<dsh::Result> && !gives_out<const dsh::Result>);

template <class Handle, class = void> constexpr bool gives_text = false;
template <class Handle> constexpr bool gives_text<Handle, std::void_t<decltype(std::declval<Handle>().text())>> = true;
static_assert(gives_text<dsh::Chunk&> && !gives_text<dsh::Chunk>);

template <class Handle, class = void> constexpr bool gives_command = false;
template <class Handle> constexpr bool gives_command<Handle, std::void_t<decltype(std::declval<Handle>().command())>> =
    true;
static_assert(gives_command<dsh::Spec&> && !gives_command<dsh::Spec>);

// A temporary token would be gone before the command that it is for is started.
template <class Token, class = void> constexpr bool taken = false;
template <class Token>
constexpr bool taken<Token, std::void_t<decltype(std::declval<dsh::Request&>().with_cancel(std::declval<Token>()))>> =
    true;
static_assert(taken<dsh::CancelToken&> && !taken<dsh::CancelToken>);

} // namespace

TEST("a result that is moved takes its views along, and what is left is empty")
{
    dsh::Result result = dsh::Executor().run("echo hello; echo err >&2; exit 3");
    const std::string_view text = result.out().text;
    dsh::Result moved = std::move(result);
    CHECK(moved.out().text.data() == text.data());
    CHECK(result.native_handle() == nullptr);
    CHECK(result.out().text.empty() && result.err().text.empty() && result.scrubbed().empty());
    CHECK(result.survivors().empty() && result.held_by().empty());
    CHECK(result.outcome().exit == dsh::Exit::none);

    result = std::move(moved);
    EQUAL(result.out().text, "hello\n");
    CHECK(moved.out().text.empty());
    dsh::Result& same = result;
    result = std::move(same);
    EQUAL(result.out().text, "hello\n");
}

TEST("a chunk and a spec that are moved take their views along")
{
    const dsh::Executor executor;
    dsh::Spec spec = executor.resolve(dsh::Request{"true"});
    const dsh::Spec moved_spec = std::move(spec);
    EQUAL(moved_spec.command(), "true");
    CHECK(spec.command().empty() && spec.native_handle() == nullptr);
    const dsh::Process process = executor.start("echo hello");
    process.wait();
    dsh::Chunk chunk = process.read_output();
    const dsh::Chunk moved_chunk = std::move(chunk);
    EQUAL(moved_chunk.text(), "hello\n");
    CHECK(chunk.text().empty() && chunk.native_handle() == nullptr);
}

TEST("handles may be destroyed in any order")
{
    std::optional<dsh::Executor> executor(std::in_place);
    std::optional<dsh::Process> process(executor->start("echo hello"));
    process->wait();
    std::optional<dsh::Chunk> chunk(process->read_output());
    std::optional<dsh::Result> result(process->result());
    executor.reset();
    process.reset();
    EQUAL(chunk->text(), "hello\n");
    chunk.reset();
    EQUAL(result->out().text, "hello\n");
}

TEST("a handle may be given to another thread, and freed there")
{
    dsh::Executor executor;
    std::thread([executor = std::move(executor)]() mutable {
        dsh::Process process = executor.start("echo hello");
        std::thread([process = std::move(process)] { process.wait(); }).join();
    }).join();
}

TEST("handles of the C interface are adopted")
{
    const dsh::Executor executor;
    dsh_request_t request = DSH_REQUEST_INIT;
    request.command = "echo hello";
    request.command_len = 10;
    dsh_result_t* c_result = nullptr;
    EQUAL(dsh_run(executor.native_handle(), &request, &c_result, nullptr), DSH_OK);
    const auto result = dsh::Result::adopt(c_result);
    CHECK(result.has_value());
    EQUAL(result->out().text, "hello\n");
    CHECK(result->native_handle() == c_result);
    dsh_process_t* c_process = nullptr;
    EQUAL(dsh_start(executor.native_handle(), &request, &c_process, nullptr), DSH_OK);
    const dsh::Process process = dsh::Process::adopt(c_process);
    process.wait();
    EQUAL(dsh::Result::adopt(nullptr).error().code(), dsh::ErrorCode::null);
}

TEST("1,000 runs leave no descriptor and no thread behind, and neither do their executors")
{
    const auto runs = [](int count) {
        const dsh::Executor executor(check::quick());
        executor.event_fd();
        std::size_t before = 0;
        for (int i = 0; i < count; ++i) {
            const dsh::CancelToken token;
            const dsh::Request request = dsh::Request{"echo $A; exit 3"}.with_env("A", "1").with_cancel(token);
            if (i % 10 == 0) {
                const dsh::Process process = executor.start(request);
                process.wait();
                CHECK(process.result().outcome().code == 3 && process.read_output().end());
            } else {
                CHECK(executor.run(request).outcome().code == 3);
            }
            CHECK(ERROR_OF(executor.run(dsh::Request{"true"}.with_workdir("/no/such/folder"))).error_number() != 0);
            UNTIL(executor.stats().live == 0);
            if (i == 10)
                before = check::descriptors();
            if (i == count - 1) {
                EQUAL(check::descriptors(), before);
                EQUAL(executor.stats().ended, static_cast<std::uint64_t>(count));
            }
        }
    };
    runs(20);
    const std::size_t descriptors = check::descriptors(), threads = check::threads();
    runs(1000);
    EQUAL(check::descriptors(), descriptors);
    UNTIL(check::threads() == threads);
}

TEST("what is not read, not waited for and not asked again is freed all the same")
{
    const std::size_t descriptors = check::descriptors();
    {
        const dsh::Executor executor(check::quick());
        for (int i = 0; i < 50; ++i) {
            executor.start("echo hello; sleep 60");
            executor.start(dsh::Request{"cat; sleep 60"}.with_input(std::string(100'000, 'x')));
        }
        EQUAL(executor.stats().live, 100U);
    }
    EQUAL(check::descriptors(), descriptors);
}
