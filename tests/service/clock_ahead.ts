/** Runs in a process before the program: from then on its wall clock is 1 s ahead of everybody else's. */

const trueNow = Date.now;
Date.now = () => trueNow() + 1_000;
