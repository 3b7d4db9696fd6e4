/**
 * The result of a command that makes a key: lines for people, and the same for programs, without the key.
 *
 * - `key`: whether it was there, was made, or replaced another one.
 * - `setting`: the name of its setting in `envFile`.
 * - `publicFile`: the file that publishes its public half.
 * - `isPublicFileWritten`: whether this run wrote that file.
 * - `warning`: null if there is none.
 */
export interface MadeKey {
  lines: string[];
  json: {
    key: 'kept' | 'made' | 'replaced';
    setting: string;
    envFile: string;
    publicFile: string;
    isPublicFileWritten: boolean;
    warning: string | null;
  };
}
