import { createVerifyCryptosuite, type VerifyCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';

/**
 * The cryptosuite that verifies derived ecdsa-sd-2023 proofs, but refuses proofs that repeat a statement.
 *
 * Version 3.4.1 takes the labels of blank nodes from the unsigned part of the proof and does not check that
 * they differ. Two objects can be given the label of one that was signed, so that a package without an id
 * appears in the credential twice (docs/reports/ecdsa-sd-2023-duplicated-objects.md). Objects that refer to
 * it then make the same statement twice, which a set of RDF statements never contains.
 */
export function createStrictVerifyCryptosuite(): VerifyCryptosuite {
  const suite = createVerifyCryptosuite();
  return {
    ...suite,
    async createVerifyData(options) {
      const data = await suite.createVerifyData(options);
      if (new Set(data.nonMandatory).size === data.nonMandatory.length) return data;
      throw new Error(
        'The proof uses a signed statement more than once: an object was duplicated or divided.',
      );
    },
  };
}
