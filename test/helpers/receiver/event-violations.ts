/** Violations of event schemas by events that tests received: those of the current test. */
const violations: string[] = [];

/** Lets the current test fail at its end. */
export function addViolation(event: unknown, problem: string): void {
  violations.push(`An event violates its schema: ${problem}\n${JSON.stringify(event)}`);
}

/** Throws if an event violated its schema. */
export function everyEventIsValid(): void {
  const found = violations.splice(0);
  if (found.length > 0) throw new Error(found.join('\n'));
}

// `hardhat test` without workers does not load root-hooks.ts; benchmarks have no Mocha.
if (typeof afterEach === 'function') afterEach(everyEventIsValid);
