import { maskStandardError } from '../cli/terminal/masked-output';
import { readable } from './task-error';

try {
  maskStandardError();
} catch (thrown) {
  throw readable(thrown);
}
