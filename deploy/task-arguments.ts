/** What every command takes that sends a transaction of the registry's owner with a remark. */
export interface OwnerArguments {
  remark?: string;
  credential?: string;
  registry?: string;
  json: boolean;
}

// The descriptions of arguments that several commands have.

export const TOKEN =
  'Its id (64 hexadecimal digits; 0x and hexadecimal; decimal), or a file: a credential or the answer of POST /create';
export const REGISTRY = 'Address of the registry (default: TOKEN_REGISTRY_ADDRESS)';
export const REMARK =
  'At most 120 bytes; readable by everybody unless there is a credential to encrypt it under';
export const CREDENTIAL =
  'File with the credential, or the answer of POST /create, whose id is the key of the remark';
export const JSON_FLAG = 'One JSON object';
