const TEXT = { type: 'string' };

/** Schema of an object with these terms and no others. */
function only(terms: readonly string[], others: object = {}): object {
  return {
    additionalProperties: false,
    properties: { ...Object.fromEntries(terms.map((term) => [term, TEXT])), ...others },
  };
}

function listOf(terms: readonly string[]): object {
  return { type: 'array', items: { type: 'object', ...only(terms) } };
}

/**
 * The terms of a Bill of Lading's subject, and those that every credential's contexts define for a subject,
 * with their types. The published schema accepts other terms and types; for an author they are most likely
 * mistakes.
 */
export const TERMS_SCHEMA = only(
  [
    'id',
    'name',
    'description',
    'billOfLadingName',
    'vessel',
    'voyageNo',
    'portOfLoading',
    'portOfDischarge',
    'carrierName',
    'placeOfReceipt',
    'placeOfDelivery',
    'shipperName',
    'shipperAddressStreet',
    'shipperAddressCountry',
    'consigneeName',
    'notifyPartyName',
    'links',
  ],
  {
    packages: listOf(['packagesDescription', 'packagesWeight', 'packagesMeasurement']),
    attachments: listOf(['data', 'filename', 'mimeType']),
    // The published schema says what these are.
    type: true,
    scac: true,
    blNumber: true,
  },
);
