#include "values.h"

#include <cmath>
#include <limits>

namespace dsh_node {

void raise(napi_env env, const char *message)
{
    napi_throw_error(env, nullptr, message);
    throw Pending{};
}

void raise_last(napi_env env)
{
    const napi_extended_error_info *info = nullptr;
    napi_get_last_error_info(env, &info);
    bool pending = false;
    napi_is_exception_pending(env, &pending);
    if (!pending) {
        const char *message = info->error_message;
        napi_throw_error(env, nullptr, message != nullptr ? message : "a call of Node-API failed");
    }
    throw Pending{};
}

namespace {

napi_value make_error(napi_env env, const char *message, dsh_status_t status, int32_t system, const char *stage)
{
    napi_value make = nullptr;
    check(env, napi_get_reference_value(env, Environment::of(env).make_error, &make));
    const napi_value arguments[] = {string(env, message), number(env, status), number(env, system), string(env, stage)};
    napi_value error = nullptr;
    check(env, napi_call_function(env, undefined(env), make, 4, arguments, &error));
    return error;
}

} // namespace

napi_value error_value(napi_env env, const dsh_error_t *error)
{
    return make_error(env, dsh_error_message(error), dsh_error_code(error), dsh_error_errno(error),
                      dsh_error_stage(error));
}

void require(napi_env env, dsh_status_t status, const OwnedError &error)
{
    if (status == DSH_OK)
        return;
    napi_throw(env, error_value(env, error.get()));
    throw Pending{};
}

void refuse(napi_env env, const std::string &message)
{
    napi_throw(env, make_error(env, message.c_str(), DSH_E_INVALID, 0, "argument"));
    throw Pending{};
}

Call::Call(napi_env env_, napi_callback_info info) : env(env_), environment(Environment::of(env_))
{
    size_t count = MAX_ARGUMENTS;
    check(env, napi_get_cb_info(env, info, &count, arguments_.data(), nullptr, nullptr));
}

napi_value undefined(napi_env env)
{
    napi_value value = nullptr;
    check(env, napi_get_undefined(env, &value));
    return value;
}

napi_value number(napi_env env, double from)
{
    napi_value value = nullptr;
    check(env, napi_create_double(env, from, &value));
    return value;
}

napi_value boolean(napi_env env, bool from)
{
    napi_value value = nullptr;
    check(env, napi_get_boolean(env, from, &value));
    return value;
}

napi_value string(napi_env env, std::string_view text)
{
    napi_value value = nullptr;
    check(env, napi_create_string_utf8(env, text.data(), text.size(), &value));
    return value;
}

napi_value array(napi_env env, size_t length)
{
    napi_value value = nullptr;
    check(env, napi_create_array_with_length(env, length, &value));
    return value;
}

napi_value array(napi_env env, std::initializer_list<napi_value> elements)
{
    const napi_value list = array(env, elements.size());
    size_t index = 0;
    for (const napi_value element : elements)
        set_at(env, list, index++, element);
    return list;
}

void set_at(napi_env env, napi_value array, size_t index, napi_value value)
{
    check(env, napi_set_element(env, array, static_cast<uint32_t>(index), value));
}

void set(napi_env env, napi_value object, const char *name, napi_value value)
{
    check(env, napi_set_named_property(env, object, name, value));
}

napi_value optional_string(napi_env env, const char *text)
{
    return text == nullptr ? undefined(env) : string(env, text);
}

napi_value bytes(napi_env env, const void *data, size_t length)
{
    if (length == 0)
        return undefined(env);
    napi_value value = nullptr;
    check(env, napi_create_buffer_copy(env, length, data, nullptr, &value));
    return value;
}

napi_value strings(napi_env env, const char *const *texts, size_t count)
{
    if (count == 0)
        return undefined(env);
    const napi_value list = array(env, count);
    for (size_t i = 0; i < count; ++i)
        set_at(env, list, i, string(env, texts[i]));
    return list;
}

napi_value pids(napi_env env, const int32_t *from, size_t count)
{
    if (count == 0)
        return undefined(env);
    const napi_value list = array(env, count);
    for (size_t i = 0; i < count; ++i)
        set_at(env, list, i, number(env, from[i]));
    return list;
}

napi_value survivors(napi_env env, const dsh_survivor_t *from, size_t count)
{
    if (count == 0)
        return undefined(env);
    const napi_value list = array(env, 2 * count);
    for (size_t i = 0; i < count; ++i) {
        set_at(env, list, 2 * i, number(env, from[i].pid));
        set_at(env, list, 2 * i + 1, number(env, static_cast<double>(from[i].start_time)));
    }
    return list;
}

napi_value get(napi_env env, napi_value object, const char *name)
{
    napi_value value = nullptr;
    check(env, napi_get_named_property(env, object, name, &value));
    return value;
}

bool is_undefined(napi_env env, napi_value value)
{
    napi_valuetype type = napi_undefined;
    check(env, napi_typeof(env, value, &type));
    return type == napi_undefined;
}

double number(napi_env env, napi_value value)
{
    double result = 0;
    check(env, napi_get_value_double(env, value, &result));
    return result;
}

double *doubles(napi_env env, napi_value float64_array, size_t &length)
{
    napi_typedarray_type type = napi_float64_array;
    void *data = nullptr;
    check(env, napi_get_typedarray_info(env, float64_array, &type, &length, &data, nullptr, nullptr));
    if (type != napi_float64_array)
        raise(env, "not a Float64Array");
    return static_cast<double *>(data);
}

uint64_t unsigned_from(double value)
{
    constexpr double LIMIT = 18446744073709551616.0; // 2^64
    if (!(value > 0))
        return 0;
    const double rounded = std::ceil(value);
    return rounded >= LIMIT ? std::numeric_limits<uint64_t>::max() : static_cast<uint64_t>(rounded);
}

namespace {

std::string utf8(napi_env env, napi_value value)
{
    size_t length = 0;
    check(env, napi_get_value_string_utf8(env, value, nullptr, 0, &length));
    std::string text(length, '\0');
    // Room for the NUL that Node adds is there: a std::string ends in one.
    check(env, napi_get_value_string_utf8(env, value, text.data(), length + 1, &length));
    return text;
}

} // namespace

std::string terminated(napi_env env, napi_value value, const char *name)
{
    std::string text = utf8(env, value);
    if (text.find('\0') != std::string::npos)
        refuse(env, std::string(name) + " holds a NUL character");
    return text;
}

TextList::TextList(napi_env env, napi_value value, const char *name)
{
    if (is_undefined(env, value))
        return;
    uint32_t count = 0;
    check(env, napi_get_array_length(env, value, &count));
    texts_.reserve(count);
    pointers_.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
        napi_value element = nullptr;
        check(env, napi_get_element(env, value, i, &element));
        texts_.push_back(terminated(env, element, name));
        pointers_.push_back(texts_.back().c_str());
    }
}

Bytes::Bytes(napi_env env, napi_value value)
{
    napi_valuetype type = napi_undefined;
    check(env, napi_typeof(env, value, &type));
    if (type == napi_undefined)
        return;
    if (type == napi_string) {
        text_ = utf8(env, value);
        data_ = text_.data();
        size_ = text_.size();
        return;
    }
    void *data = nullptr;
    check(env, napi_get_typedarray_info(env, value, nullptr, &size_, &data, nullptr, nullptr));
    // An empty array may have no memory, and is still not the same as none.
    data_ = data == nullptr ? "" : static_cast<const char *>(data);
}

} // namespace dsh_node
