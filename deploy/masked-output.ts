import { maskStandardError } from '../cli/errors';
import { readable } from './task-error';

try {
  maskStandardError();
} catch (thrown) {
  throw readable(thrown);
}
