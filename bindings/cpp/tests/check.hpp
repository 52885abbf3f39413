// What the tests share. A test program has tests, each named by a sentence, and says which of them do not hold.
#ifndef CHECK_HPP
#define CHECK_HPP

#include <dsh.hpp>

#include <dirent.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace check {

struct Test {
    const char* name;
    void (*body)();
};

inline std::vector<Test>& tests()
{
    static std::vector<Test> all;
    return all;
}

struct Registered {
    Registered(const char* name, void (*body)()) { tests().push_back({name, body}); }
};

// What a failed check shows of a value.
template <class Value> std::string shown(const Value& value)
{
    std::ostringstream text;
    if constexpr (std::is_enum_v<Value>)
        text << static_cast<std::int64_t>(value);
    else if constexpr (std::is_convertible_v<Value, std::string_view>)
        text << '"' << std::string_view(value) << '"';
    else
        text << value;
    return text.str();
}

[[noreturn]] inline void fail(const char* file, int line, const std::string& what)
{
    throw std::logic_error(std::string(file) + ':' + std::to_string(line) + ": " + what);
}

template <class Left, class Right>
void equal(const Left& left, const Right& right, const char* expression, const char* file, int line)
{
    if (!(left == right))
        fail(file, line, std::string(expression) + ": " + shown(left) + " is not " + shown(right));
}

// The error that a call throws.
template <class Call> dsh::Error error_of(Call call, const char* expression, const char* file, int line)
{
    try {
        call();
    } catch (const dsh::Error& error) {
        return error;
    }
    fail(file, line, std::string(expression) + ": did not fail");
}

inline bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Waits until a condition holds; a hang ends after a minute.
template <class Condition> void until(Condition condition, const char* expression, const char* file, int line)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end)
            fail(file, line, std::string(expression) + ": did not come true");
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

inline std::size_t entries_of(const char* folder)
{
    std::size_t count = 0;
    DIR* open = opendir(folder);
    if (open == nullptr)
        throw std::runtime_error("can't read " + std::string(folder));
    while (readdir(open) != nullptr)
        ++count;
    closedir(open);
    return count;
}

inline std::size_t descriptors() { return entries_of("/proc/self/fd"); }
inline std::size_t threads() { return entries_of("/proc/self/task"); }

// Settings with short limits, so that a forced stop is soon through.
inline dsh::Settings quick()
{
    dsh::Settings settings;
    settings.grace = std::chrono::milliseconds(300);
    settings.drain = std::chrono::milliseconds(200);
    return settings;
}

} // namespace check

#define CHECK_JOIN_(a, b) a##b
#define CHECK_JOIN(a, b) CHECK_JOIN_(a, b)
#define CHECK_TEST(name, body)                                                                                         \
    static void body();                                                                                                \
    static const check::Registered CHECK_JOIN(body, _registered)(name, body);                                          \
    static void body()

#define TEST(name) CHECK_TEST(name, CHECK_JOIN(test_, __LINE__))
#define CHECK(...) ((__VA_ARGS__) ? void() : check::fail(__FILE__, __LINE__, "not so: " #__VA_ARGS__))
#define EQUAL(left, right) check::equal((left), (right), #left, __FILE__, __LINE__)
#define ERROR_OF(...) check::error_of([&] { static_cast<void>(__VA_ARGS__); }, #__VA_ARGS__, __FILE__, __LINE__)
#define UNTIL(...) check::until([&] { return __VA_ARGS__; }, #__VA_ARGS__, __FILE__, __LINE__)

int main()
{
    int failed = 0;
    for (const check::Test& test : check::tests()) {
        try {
            test.body();
            std::cout << "ok      " << test.name << std::endl;
        } catch (const std::exception& error) {
            std::cout << "FAILED  " << test.name << "\n        " << error.what() << std::endl;
            ++failed;
        }
    }
    return failed == 0 ? 0 : 1;
}

#endif
