/**
 * Kubernetes' MicroTime: the form of times in Leases and Events.
 *
 * @module
 */

/**
 * Writes an instant as RFC 3339 in UTC with six fraction digits, rounded down.
 *
 * @param ms Milliseconds since 1970; a fraction is allowed.
 */
export function microTime(ms: number): string {
  const whole = Math.floor(ms);
  return Temporal.Instant.fromEpochMilliseconds(whole)
    .add({ microseconds: Math.floor((ms - whole) * 1000) })
    .toString({ fractionalSecondDigits: 6 });
}
