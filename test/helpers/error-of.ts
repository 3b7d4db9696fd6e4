import { ServiceError } from '../../service/base/errors';

/** The error that a promise rejects with, which must be one of the project's own. */
export async function errorOf(work: Promise<unknown>): Promise<ServiceError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof ServiceError) return error;
  throw new Error(`did not reject as expected: ${String(error)}`);
}
