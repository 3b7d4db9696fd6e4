const TEXT = { type: 'string' };

function listOf(terms: Readonly<Record<string, string>>): object {
  const properties = Object.fromEntries(
    Object.entries(terms).map(([term, description]) => [term, { ...TEXT, description }]),
  );
  return { type: 'array', items: { type: 'object', additionalProperties: false, properties } };
}

/**
 * JSON Schemas of the terms of a Bill of Lading's subject, and of those that every credential's contexts
 * define for a subject.
 */
export const SUBJECT_TERMS: Readonly<Record<string, object>> = {
  type: { type: 'array', items: TEXT },
  ...Object.fromEntries(
    [
      'scac',
      'blNumber',
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
      'id',
      'name',
      'description',
    ].map((term) => [term, TEXT]),
  ),
  packages: listOf({
    packagesDescription: 'Number, kind and content of the packages.',
    packagesWeight: 'The weight with its unit, such as `8200 kg`.',
    packagesMeasurement: 'The volume with its unit, such as `21 m3`.',
  }),
  attachments: listOf({
    data: 'The bytes of the file in base64.',
    filename: 'The name of the file.',
    mimeType: 'The media type of the file, such as `application/pdf`.',
  }),
};
