// The text of scenario files.
#ifndef SCENARIOS_TEXT_HPP
#define SCENARIOS_TEXT_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace scenarios {

// A line that this driver does not know.
struct Unknown {};

inline std::string unescaped(std::string_view text)
{
    std::string bytes;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 == text.size()) {
            bytes += text[i];
            continue;
        }
        switch (text[++i]) {
        case 'n':
            bytes += '\n';
            break;
        case 't':
            bytes += '\t';
            break;
        case 'r':
            bytes += '\r';
            break;
        case '\\':
        case '"':
            bytes += text[i];
            break;
        case 'x':
            if (i + 2 >= text.size())
                throw Unknown();
            bytes += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
            i += 2;
            break;
        default:
            throw Unknown();
        }
    }
    return bytes;
}

inline std::string escaped(std::string_view bytes)
{
    std::string text = "\"";
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\n')
            text += "\\n";
        else if (c == '\t')
            text += "\\t";
        else if (c == '\r')
            text += "\\r";
        else if (c == '\\' || c == '"')
            (text += '\\') += c;
        else if (byte < 0x20 || byte > 0x7e) {
            char hex[5];
            std::snprintf(hex, sizeof hex, "\\x%02x", byte);
            text += hex;
        } else
            text += c;
    }
    return text + '"';
}

inline std::string replaced(std::string text, std::string_view what, std::string_view by)
{
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
        text.replace(at, what.size(), by);
    return text;
}

// Cuts the first word off.
inline std::string word(std::string_view& rest)
{
    const std::size_t end = rest.find(' ');
    const std::string first(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    return first;
}

inline std::uint64_t number(std::string_view text, int base = 10)
{
    const std::string digits(text);
    char* end = nullptr;
    const std::uint64_t value = std::strtoull(digits.c_str(), &end, base);
    if (digits.empty() || *end != '\0')
        throw Unknown();
    return value;
}

inline bool on(std::string_view text)
{
    if (text != "on" && text != "off")
        throw Unknown();
    return text == "on";
}

} // namespace scenarios

#endif
