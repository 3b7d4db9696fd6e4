/** Differences between what the current test received and its description. */
const violations: string[] = [];

/** Lets the current test fail at its end. */
export function addViolation(problem: string, received: unknown): void {
  violations.push(`${problem}\n${JSON.stringify(received)}`);
}

/** Throws if something that a test received was not as described. */
export function everythingIsAsDescribed(): void {
  const found = violations.splice(0);
  if (found.length > 0) throw new Error(found.join('\n'));
}
