/* Marks in a program that is stepped through: a trap, with its meaning in a register. */
#ifndef MARKS_H
#define MARKS_H

enum { MARK_BEGIN = 1, MARK_END, MARK_SKIP, MARK_ON };

#ifdef __x86_64__
#define MARK(meaning) __asm__ volatile("int3" : : "a"((long)(meaning)) : "memory")
#else
#define MARK(meaning) __builtin_trap() /* nothing is stepped through elsewhere */
#endif

#endif
