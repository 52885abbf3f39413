// Errors and expected values.
#include "check.hpp"

#include <cerrno>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>

TEST("an error has code, errno, stage and message, of which the message names the value")
{
    const dsh::Executor executor;
    const dsh::Error error = ERROR_OF(executor.run(dsh::Request{"true"}.with_workdir("/no/such/folder")));
    EQUAL(error.code(), dsh::ErrorCode::workdir_missing);
    EQUAL(error.error_number(), ENOENT);
    CHECK(error.system_error() == std::errc::no_such_file_or_directory);
    EQUAL(std::string(error.stage()), "workdir");
    CHECK(check::has(error.what(), "/no/such/folder"));
}

TEST("an error without a system call has no errno")
{
    const dsh::Executor executor;
    const dsh::Error error = ERROR_OF(executor.run(std::string("a\0b", 3)));
    EQUAL(error.code(), dsh::ErrorCode::command_nul);
    EQUAL(error.error_number(), 0);
    CHECK(!error.system_error());
}

TEST("an error is a std::runtime_error, and copies of it are whole")
{
    static_assert(std::is_base_of_v<std::runtime_error, dsh::Error>);
    static_assert(std::is_nothrow_copy_constructible_v<dsh::Error>);
    static_assert(std::is_nothrow_copy_assignable_v<dsh::Error>);
    std::optional<dsh::Error> copy;
    {
        const dsh::Error error(dsh::ErrorCode::spawn, 11, "clone", "a message");
        copy = error;
    }
    EQUAL(copy->code(), dsh::ErrorCode::spawn);
    EQUAL(copy->error_number(), 11);
    EQUAL(std::string(copy->stage()), "clone");
    EQUAL(std::string(copy->what()), "a message");
}

TEST("a stage that is longer than all known ones is cut, not overrun")
{
    const dsh::Error error(dsh::ErrorCode::system, 0, std::string(100, 'x'), "");
    EQUAL(std::string(error.stage()), std::string(31, 'x'));
}

TEST("a code says what it means")
{
    CHECK(check::has(dsh::to_string(dsh::ErrorCode::shutdown), "shut down"));
    EQUAL(std::string(dsh::to_string(static_cast<dsh::ErrorCode>(-4711))), "unknown status");
}

TEST("what was expected is a value")
{
    dsh::Expected<std::string> value(std::string("text"));
    CHECK(value.has_value() && value);
    EQUAL(*value, "text");
    EQUAL(value->size(), 4U);
    EQUAL(value.value(), "text");
    EQUAL(std::move(value).value_or("other"), "text");
}

TEST("what was expected is the error, which value() throws")
{
    dsh::Expected<std::string> none(dsh::Error(dsh::ErrorCode::invalid, 0, "argument", "why"));
    CHECK(!none.has_value() && !none);
    EQUAL(none.error().code(), dsh::ErrorCode::invalid);
    EQUAL(ERROR_OF(none.value()).code(), dsh::ErrorCode::invalid);
    EQUAL(std::string(ERROR_OF(std::move(none).value()).what()), "why");
    EQUAL(std::move(none).value_or("other"), "other");
}

TEST("an expected nothing is success or the error")
{
    const dsh::Expected<void> done;
    CHECK(done.has_value());
    done.value();
    const dsh::Expected<void> failed(dsh::Error(dsh::ErrorCode::spawn, 0, "", ""));
    CHECK(!failed);
    EQUAL(ERROR_OF(failed.value()).code(), dsh::ErrorCode::spawn);
}

TEST("a value that can only be moved is moved out")
{
    dsh::Expected<dsh::Executor> made = dsh::Executor::try_make();
    CHECK(made.has_value());
    const dsh::Executor executor = *std::move(made);
    EQUAL(executor.run("exit 3").outcome().code.value(), 3);
    const dsh::Executor other = dsh::Executor::try_make().value();
    EQUAL(other.run("exit 4").outcome().code.value(), 4);
}

TEST("each call that throws has a twin that does not")
{
    const dsh::Executor executor;
    const auto result = executor.try_run("exit 3");
    CHECK(result.has_value());
    EQUAL(result->outcome().code.value(), 3);
    const auto refused = executor.try_run(dsh::Request{"true"}.with_workdir("/no/such/folder"));
    CHECK(!refused);
    EQUAL(refused.error().code(), dsh::ErrorCode::workdir_missing);
}
