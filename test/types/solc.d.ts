// The part of solc that the tests use; it comes without types.

declare module 'solc' {
  /** The version of the compiler: "0.8.22+commit.4fc1097e.Emscripten.clang". */
  export function version(): string;
  /** Standard JSON in and out. */
  export function compile(input: string): string;
}
