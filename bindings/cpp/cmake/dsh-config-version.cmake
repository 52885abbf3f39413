# The version is the header's, so that the two can't differ. Before 1.0 a new minor version may break programs; from it
# on, only a new major version.

file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../../../include/dsh.h" _dsh_lines REGEX "define DSH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCH ([0-9]+).*" "\\1.\\2.\\3" PACKAGE_VERSION "${_dsh_lines}")
unset(_dsh_lines)

set(PACKAGE_VERSION_COMPATIBLE FALSE)
if(PACKAGE_FIND_VERSION_RANGE)
  if(PACKAGE_VERSION VERSION_GREATER_EQUAL PACKAGE_FIND_VERSION_MIN
      AND (PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION_MAX
        OR (PACKAGE_FIND_VERSION_RANGE_MAX STREQUAL "INCLUDE"
          AND PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION_MAX)))
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
  endif()
elseif(PACKAGE_VERSION VERSION_GREATER_EQUAL PACKAGE_FIND_VERSION)
  string(REGEX MATCH "^0\\.[0-9]+|^[0-9]+" _dsh_series "${PACKAGE_VERSION}")
  if(PACKAGE_FIND_VERSION_COUNT LESS 2)
    string(REGEX MATCH "^[0-9]+" _dsh_series "${PACKAGE_VERSION}")
  endif()
  if("${PACKAGE_FIND_VERSION}." MATCHES "^${_dsh_series}\\.")
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
  endif()
  if(PACKAGE_FIND_VERSION STREQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
  unset(_dsh_series)
endif()
