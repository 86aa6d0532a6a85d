/* How the vendor's libraries are loaded.
 *
 * Theirs is a C++ library of its own (libc++). Where the program has another (libstdc++), the loader would give them functions of both, and an
 * exception that one of their threads hands to another would end the process. So they look among their own dependencies first, which
 * only sanitizers forbid. */
#ifndef GENAI_QNN_LOAD_FLAGS_H
#define GENAI_QNN_LOAD_FLAGS_H

#include <dlfcn.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define QNN_SANITIZED 1
#endif
#endif
#if defined(RTLD_DEEPBIND) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(QNN_SANITIZED)
#define QNN_LOAD_FLAGS (RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)
#else
#define QNN_LOAD_FLAGS (RTLD_NOW | RTLD_LOCAL)
#endif

#endif
