# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types of GGUF whose numbers are rows of tables, or of few bits: what a block
of each stands for by the published definition, and random blocks."""
import base64
import hashlib
import struct
import zlib

# name: number, values of a block, bytes of a block
TYPES = {"IQ2_XXS": (16, 256, 66), "IQ2_XS": (17, 256, 74),
         "IQ3_XXS": (18, 256, 98), "IQ1_S": (19, 256, 50),
         "IQ3_S": (21, 256, 110), "IQ2_S": (22, 256, 82),
         "IQ4_XS": (23, 256, 136), "IQ1_M": (29, 256, 56),
         "TQ1_0": (34, 256, 54), "TQ2_0": (35, 256, 66),
         "Q8_1": (9, 32, 36), "Q8_K": (15, 256, 292), "I8": (24, 1, 1),
         "I16": (25, 1, 2), "I32": (26, 1, 4), "I64": (27, 1, 8),
         "F64": (28, 1, 8)}
NUMBERS = {"I8": "<b", "I16": "<h", "I32": "<i", "I64": "<q", "F64": "<d"}
STEPS = [-127, -104, -83, -65, -49, -35, -22, -10,
         1, 13, 25, 38, 53, 69, 89, 113]

# The rows one behind the other, two bits a value of the first four tables and
# three of the last two; then compressed.
ROWS = (
    "eNqVmP3383Z93iVHcmTnAcmRjGUIyMZybBMgy8JD06aVHMmxnHSTPElIXuksI7m2aRgwnsY6"
    "ZjuWsR2glpGM/eXJdm3XdkqapMA6WnaSNAySQk9gowuHhxNg66GcdqMcytKz7px9bvfevYbx"
    "y/4C/aDr/Xpd1weCQhAKYVAUIiASYqA0lIMKEA8JkAwZkAXZUBfqQxNoA8EwAuMwBXPwAF7A"
    "UCgUSof6IRhBEBxJIRmEQ4pIGakjPWSATJEtAqEhFEMZtIS20S7qoZEwHubCg/A2DGEohmEk"
    "lsN4TMBkrIqNMCTCRUJRMgrjCI7jKZzD6/gAn+IBDhEYwRAyUSO6RCYmxiASIxmSJSWySyao"
    "BgXF43E4gSTwBJfoJSAapVe0koSYEBNlBMZiukyfyafKKSgdSsMZJINnuIyegVietdlpFssx"
    "OT8nFGAO4XAuwaW4DMdxZU7n6lyPG3BTDuIZ3uK7vMvDRbxYLurFVhESMIERusJSiIkZESrB"
    "ZaSMl7myWIYkQ7KkviRWphVIxmRCpmVG7sojGVGKylbxqlN1pkY1WFd1yCAM2rANzsRqSB2v"
    "c/VWHbI0K9GoNyAbtXEn5gycYgvqhrrRLt/td5Feosf1iD48QAb4gBpwg/oAckuu70aG3LA+"
    "DI2QMTFBpvg0M+Wm62nc63riDPLTvuArQW/BLEMreeWuImtok9jKB+QIPe//xyH6nAEWpOBS"
    "BkqQBHJQhbS/lwUXGkEe5ENLaHXORBiOgFzEQDIScBJOwRmQkCIswmVYgVW4DrfgHkjM9JwY"
    "NISFiBAZYkJ8SAjJIS3UDU3OGQojEZCjGEIhiStpEkGeFERF9CupupQpFKSKQEmQLB4VUBm1"
    "QLrgMALSlQX5KoKEQVjonLAoRoCUMRh7OWcG1sVW2AmDI0gEB3nrRcYRKMpEc9F5dHVOXhiP"
    "gPTFcApPgAxmQAqLuIiXcQVXQR47eO+cSYgIEShIJUGQIJk8IYB0dgmfmBNwDImFY3iMi9VB"
    "TkMkCrJKkCTIK08KILEyaYPUwhRC4RQHkkvGpcvZjYH0qonhOb9NkN/jOcEog4EUEwzJMAwP"
    "0iyDNK8YOIWk8BQHMu2AVKfT3fThcrLzINuXkl1llyycTWb3WSiH5aIg41pulNvkWvlpHisw"
    "hX5hVJicMx/mIiD3MY66kv0iJ4L8VziFU8ENOFeuIMSjPMYTPAnugecFXj7fxAZcBQLuIlbM"
    "FzlwFyEBBbdBCKRAgwvhBUGQwZ34AiwiIg5uhRMvwL1ES0JJ/ntXo5Yb4HIISZBkqS0h4HJC"
    "Mnq+HhJcT07mZUGWwRXBCqLgCqVw4JagqlA9VWEVUXE1pXJqXe2paxXSMK2rjbSU3tLX4MJI"
    "gzdkY2kkTc4smm4Nrv/dpan1Rn1YP4J7yzQqjRm4tzi4N84Rna0Dtzotth3uqJ1G59LtoV2s"
    "S3TJLtMtgCsUunK3C27x0D114R7SC/dwcJNKz+xBfabf7ff7q/7h8oXGLt/oGFyp4O7cxLAz"
    "hEbYiB3VRt1Rf3QYhcfpSXcymswnhwk8vXS53FSfDqaQl/ZsT5+NwfWi4Hpl3/DzwTSYBfxc"
    "WewX0pK6qF9Aq9AKW0VXzKqwWq2Utbneg8sObbBNYdPdrDbcNtg6+8U+emAO6UPusDocwM0P"
    "jsNj7lQ4eafT6f/v/ptQ+3kMWEE76PT/UOCnGaDDJuCAc4UEMziA1/D2p4hQODOhFJIuc8EF"
    "ZPBDm59JhyySv0KIymVGmIASDcQ5k2KIjAEtAmSBrC+b6BI1omduxFEasINFc2d+lFAJMKSK"
    "aqgBSGIDlvRRFx0BX/no6syVcPiSuSjAFjFcDithNVwP9wBlplc4c4kycYw+k6ZwZk0Jk85e"
    "0wBzLMwG3HEx/wp5YhEqkoikAIHESDmiRNRIHbBoClhEAAOmAY8KUTm6/JlEyj6PSTpuAi41"
    "cAdvndk0PBtzga/x7RVKRc+cihM0YFWaYIncmVglQgLUqhIaYRAWYQN+9QmXGBEe4NglikUA"
    "xahYKpYBLBNjSkyN9WKD2PR5VIuT9NnEuTPdSme+VUmNNEjrzLk+6ZIj0iN9cnVmXpiKAO7F"
    "KIpKUCkqAwhYpESqTCmUStWpHjWgpoCJaByLE4CMTJyPC3E53o2fzowMJyKAk1QikUgBVhYT"
    "YqKcUAAz68D6A8DNECAnRhM0STM0Twu0TLfpDY0k8SSX1K/Q9BJL4wwNeMoyhctMrTIaYwOy"
    "ThifOV2mayxFpVKAscWUmFJSaqqe6qUGqSngbRQQN5cupIW0nB6lJ5fZG85EAH+pTCKTymQA"
    "hYsZMVPOKBk1U8/0MoPMFHAZZTGWYEmWAYQWWJltsl1AaSSLZ7msCUiN5ogcmeNzQk7OTXKn"
    "HJxH8ng+yEcL6YL9M4mdPDM7+1PU1jkTkLtxhd0Bt+DW3PZ5DI/zNOB4mmfPLC/xEuB5ldd4"
    "A3QdG5C9D9g+4j3e51dXCE8VE8UMoLwIWpBSVIv1Yq84uML86Jn68TP30wIr5M70LwkSMEBV"
    "0ARDsAQbuKAvuMJI8IATVmcrhMUIMENMpMSEmDoboiiKYllURFWsix2xJw7EKXBGqISWsBJR"
    "IktMiT/7o1vanR0SARaJlalyopwqZ4BPisAo5bICrFIvD8pTYJaQhEoY8AspMRJ/tkxXmktw"
    "BangFe55tomf+1paZi9bpyRLwDxVWZMN2ZJt4KC+7II258n+2UZhJQKMFANOSigpJXM2k6iU"
    "FUVRlbrSUwbKFJgKrWJVokpWmSoPrCVX29Xu2VxhNQLsFVMpNQEclgEWK6qiWlYVVT37bKBO"
    "gdFCGgqsRmikxmi8JmgyMBysIzquZ3UOOC5koAYGuiRpMMB2AvBdzegasImYOLAeVKNrbu1w"
    "Nl8YuC9Wp+qJeqqeARYU6+W6AlxYrw/qU+DCkIVamEVYpMVYvCVYstW1lhbSwBtcQ2+sz60U"
    "swmbtBmbtwVbtrs27CDOJXNWnJYzc6Cm34RbSAtvOa1FC2oX2sXO+nkWpYFH2cserXa1rtG1"
    "gE/drtf1zz6NAJ/GehRouqleBpi12BN7ZeBXtdfrDXrT3hF4Fu1H+0Sf7PN9oS+fXRseRC77"
    "NjFIAecWB+KgPFAGKrBvbzAYTIGBQy7qYi7hki7j8sDHstt1Jy48RIb4MA/6MzRCR8SIHPEj"
    "YSSPNiN4jIy5sQMMbUxqk/5kczZ0BDg6NqWmiXPHLk7FaXmqTNVpfdoD3p4Cc6Me4ZEe7wme"
    "7NU8eIbM8Bk32wOTh4DLMZ/wSZ/x+bPVu/7chwMkwAMuWATrAJqX5vYcXiALfJFdcIvjAlpK"
    "y+pyClyPAtOTqzRwPb8SQI/frE4rbu2sQ5voJr3JAef3N6PNZHPYwFtki2+57Xi73UI7eqeA"
    "BpA7bA4qMD92ip6YU/qUO41+yv/Ulf0nQgqkQjrknG0/AvsvAK7fQAdgewRGYQIm4ThMg77P"
    "wjxcgiW4CmtwDbZgGwa/H3ZhD/bhObw7Ox4LRUMUMHw6lAOWF0NKyAzZoTZwfD80Apb3QkEI"
    "DBPg+kPoFCIQEokjLMIjEqIhNcQGTveQJbIDH0aAx8MohSbQJJpHOVREK8DeCqoCf+uoidbR"
    "BuqgLbSD9oDBA3SBXqBrdIvu0D16RMkwHebDQlgOV8Na2AAet8LNcDvshr2wH16efX5pNVDA"
    "5GmwTguYiCmYjjnA332wUSdYAPbDBjsAk6MRIkJG6Egmwkb4iAwsrkWsiB1pR7yIH5lHlpEd"
    "8HkoikWjUQpsjL+zuhhVombUijrRbrQfdaOj6CQagO2xiR6ipyiOEziJ08DyLM7jAi7jGm7g"
    "Fg6KKd7GPdzH58DsOxwmECJMRAiciBEUkSBSRIbIEyJRAUZXgNNVYHWdMIk64RADYkYExJrY"
    "EkSMjMVjLPB5KSbFqjEtZsRqMTvWjLkxL+bH5rFdDCbDZASYnSITwO0pMgvMLgKzl8kKqZAq"
    "cLtOmmSDdMgWOSDH5BS4PSAX5JK8INfkltyRRzJEoVSUIigSeD5O0RRDpSmWylEFiqcE4PsS"
    "8H0VGF+jdMqkapRF2ZRDNak21aX6oAO41IiagCbgUT4VUHMKFF1qRW2oHQXHEdAOwnEKLP5E"
    "PBlPxbNxLl4ELUGMl+OVuBLX4nrciJtxK27HnXgr3o534sP4JD6LB/Ft/BgnEvEEm+ATQqKU"
    "kBJyQksYiRpoEFbCTjQT7YSb8BJ+YpfA6RhN0Uk6RbN0EXQJkS7TCq3SGq3TJl2j67RDd+gx"
    "7dEzOqAX9Jre00c6kownM8lsUkiWklJSTlaTWtJIWslmsp10k15ynrw495BLm44CDSQNOkgO"
    "tBCRURiTsRjn/FYxAj0kACtvw+yYA+gjaIpIkSk6xYIuIqSklJYyUrWUlbLB+mumXNBJ5qll"
    "apeC0xjoJkSaSjOXG4qYVtJ62kw76d65qXjpIL1Kb0BjOaXRDJmJZ+gMmxFAUyllpEw1o2WM"
    "TC3TzLgZL+Nnlpl1ZgfiTbEpNs9yrMiWWYVVWY012QbrsC12zE5Znw3YBXvBrtktu2ePLAra"
    "TCxLZ9ksn5WyWraetbLt7CA7zE6zF6DjhM57lAKLNJ3L5Qo5Mafk1JyT6+b6YKFOciuwUg+g"
    "+0TyRJ7M03k2X8pL+Wpey1t5O9/Mt/Mu2LDz/DK/ze/yUCFUwApRsGjThVyhUBALSkEvmAWn"
    "0L28cYPCqrApHAqnAsoRXJxjOYmrchpncDXO4myuyfncErSjPWhHMI/wYT7Cx3gK9KMEn+RT"
    "fJbP8yJf5iu8wqugH+m8ydd4h2/xHb7HD/ghP+VnfABa0hpsYbRIFMlivMgW+WK1qBVrRbvY"
    "Lo6LfnFXhAUKdKO8IAploSIoggo6kQ46UUNwhJbQEXrCUBgLU2EmBKAZrYUjaEchERWjIiGS"
    "oB3FRVpkRFYsiLwogIZUEiVRPrckTdRFQzRFS7RFR2yKbbEPOpMrjkRP9MVAnItLsLp34kE8"
    "iTBoURHQoahSopQspUqZUr7ElYolsVQGjUopVUtaSS+ZpUbJKbVKvZJbmpT8UlBal7alfQkt"
    "E6BnJcss6FhSWS5rZaNsle1ys9wuu2Wv7Jfn5WV5V4ZB3wpLUQkHjYuSElJKykhZiZNEqSIp"
    "UlVSJU3SJVOqSw3JkZpSRxpKY2kmBaCVLaS1tJX20lGKV4RKqSJVtIpRqVXsSrviV3YVWEZA"
    "WwvLETkmU3JSTskZOS9zsiiXZUVWQVPTZVN25JY8lMdyIC/klbyW9/IRiAIDbS2qEAoJ+loc"
    "NDZaYRRWySo5paDwigCaW0mRFBm0tyrob5qiK4ZiKjXFUmzFUZpKW+krruIpvhIoc2WprJSd"
    "clLgargaq1LVZDVVzVSLVbFaqSpVtapV9apZbVSdqludVmfVoLqsXlS3VURFVUIlQeuLg95H"
    "g+bHqjm1oPKqANpfSZXUiiqfO6Cm6qqhmmpNtdSGaquO2lTbalcdqRPVU301UOfqUl2rW3Wn"
    "nlQYNEUEdMWwFtFw0BdjoDFSWlyjtaSW0jIaq2W1vMaBDlkELVLUSlpZk0CbVLSqpmqapmuG"
    "Zmo1ra5Zmq05WlNraW2to/W0geZqY22iTTVP87VAm2sLbamtta220/baUYN0WA+BRhrWMT2i"
    "EzqpU3pCp3VGT+lpPaOzoKnm9LzO66Je0su6pFd0WVf0qq7qmq7rhm7qNd3Sbd3R23pfd/Wh"
    "PtLH+kT39EC/0Df6Tt/rB/2oI6Drho2IgRuUkTBSRsEQjbJRMRRDNTRDNwzDNOpGw7ANx+gb"
    "Y2NqzIzAWBhr4wgacchEzahJmKRJmXGTNlmTNwVTNEumZMqmYlZN1dRM3TRM06yZlmmbjtk0"
    "22bPdM2x6Zm+GZhzc2EuzZ2J1LAaVUvWmBpby9byNbFWrkk1pabV9JpRM2uNmlNr1Tq1Xm1S"
    "m9WC2ry2qF3U1jW0TtbjdbrO1oW6XNfqet2o1+pW3a436+16rz6v7+qwhVhhK2LFLMpKWWkr"
    "a+Ut0ZIsxdIs3TItx2paHWtgTayZFVhra28dLaIRb9Cgp/ONUkMDbd1o1Btuw2vMG7sGYcds"
    "yo7bSTtlZ+28zdlFW7TLdsVWbNXWbN027Zpdtxu2Yw9s1x7bU3tm+3Zgz+2FfWGv7a19tFEH"
    "c6IO4VBO3KEdwRGdkiM5sqM4qqM5umM6lmM7jtN02s7QGTsTx3MCZ+4snQtn4+ycvXNwQs1I"
    "k2oyzWwz18w3uabYLDcrTaWpNrWm3jSatWa96TRbzW6z33SbE7Am5s1Fc9lcNbfNffPUjLfo"
    "FtviW9WW1qq1rFa75bY8sDT2LbiNtPE21U61M+1sO9/m2nxbbJfa5bbSVttaW2+b7XrbaXfa"
    "/fagPWkH7XV72961j22iE+8kOnxH6EgduaN1jE6tY3ecTrsz7PidReeisz8vGKwbBdsl3c11"
    "C10RrBelq3b1rtl1zu+Bo+6kG3RX3c35ZRDtET2yF+/RPbbH94Se1JN71Z7W03tGz+zZvWav"
    "3XN7457fm/eWvR3YNKE+BlYN1Wf66X6uX+grfbVv9p3zi+KoP+kH/VV/0z/0T31yQA/4gQDW"
    "jTaoDayBPWgP/MFyALsRN+ZSbtLNunmXAxtHdMuu4qqu5uqu6dZcx226Lbfj9tyBO3TH7tSd"
    "uYG7cPcuMYwP6SE75IfCUBpWhvJQG5rD2tAaNoedoTv0hhfDLVhIoRE2io6oETNKj3KjAthK"
    "4kgZqSNz5Iza5zfN0WgyCkYrsJ8Oo9MIHYfHxJgcx8fsmB8L49JYGsvj6lgb18bW2B674/l4"
    "Od6NoUlogk2iE2rCTNKT3KQwESfKRJ3oky5YXqPJZBJMVmCBHSanCTolpnGwv+gpO+Wnpak0"
    "1abGtDZtTztTd+pN/el8upzuprCHeGEv4uEe5SW8pJfyMl7Wy3ucJ4Jlpniqp3m6Z3oNz/EG"
    "3tCbeYG38Nbe1tt7Rw+dETNyRs/YmTArzaSZPKvOtJkxa87aM3fmz+az4wz2ET/s4z7lJ/ys"
    "z/kVX/FVX/N13/BNv+5bfsN3/IE/9Ge+7wf+wl/7Rx8K0AALomDzEQEZUEE8oINUwAb5oBDw"
    "gRCIQSmQAjlQgmqgBlqgB0ZgBrXACuzACZpBO+gFbjAKvGAW+EEQzINlcBGsgk2wCw7BKYDn"
    "yByfU3N6zsyz8/xcnJfn0lyZV+faXJ+bc2femvfng/l4PpnP5v48mG/n+/lxji7iC3rBLvhF"
    "aSEvqgttoS9qC3vhLNyFt5gvlovdAlmGl5ElvowtqWVimVwyy9Qys8wuuWVxKS7Ly8pSWapL"
    "bakvzWVj6Syby86ytxwsp8vZMlheLNfL/RK9oC7YC+GidCFdyBfahXFhXbgX3oV/EVzMr7xp"
    "UysGbN0cWLviSlmpK31lrrqr/mq0mqyC1Qqs3wPYv+g6sibW5Dq+ptfJdWktrZW1tjbWtbW1"
    "ttfuerqerefr5frSm3h0g2/oy0tZ3CgbfWNunE338moONqvNBmzn04beslt+K2zlrbrVtsa2"
    "trW2zra5bW3bW3cb3kV2+C62o3aJXXaX3xV34k7ZqTttp+/MnbPr7Hq7wc7dDXfj3WwX7BZg"
    "fBL7+D65T+3ZvbAv7Sv76l7b63tjX9839sP9dB/s5/vlfr3f7vd76BA6YIf/82JfOCgH9aAf"
    "zEP30D+MDpNDcFiBJX84nA7okTzSx9SRPfJH+agda0fr2Dy2j9Pj/AidQqf/u/QLJ+WknvRT"
    "99QHq39yCk6r0+Z0uLT/GQiZQtf8EMIZmGZCP//0VfwtSHmFKDJqrFDr0fC7IazPYWMoMptG"
    "PvLDyPGH0c/h136he+1T8nXPPYS/lI+96uEb7iDIu9ZU5yv0p3ov/tJ3Xvw94qXwrQy2YYhb"
    "U4lN6sVvS+dCmeIsI6fZ3q250Sbn9fOfDd38eOgVX2+88iexW9D7bpXvfHXzQ691X3bHs1dx"
    "IZ+7BuFjNk9nivxtgjgQKqRo3HbXuwZ3dTPl8Y/L04z0CaTySfKeLz5xz3NP/OMbP1298x2a"
    "9fnXP/bqX/kT7VfhYT0at24YNl69fyOXteW5Yzebvde0Rnr7tH/Tk5+5N/Gut91+9dtLN73j"
    "3i+8++Ov/VffuPrfIM91b3yu9/Ln+r+BjT+BTR5q3f8F44PIcnabGbxx/OHPjz/61Phj0eTm"
    "ddFtqbO796nDxemBxz/7IPbzD7/wgd8rfuTTh7s/9927H8v8+uO3vfjzb/3bL37q/V/+9j1f"
    "FT/5px+545tfueNZ9L3PYg9+p/Dm/1p/8Pu7B3/w6Lf/4hvX/3fipT/iXvVj9Tf/BsKhkAxd"
    "3YUiK+jaZyEch6mHYIYJsW8J5R8K3cJc9XOPXvVLEMIziNBFpKcR+Rb09VP0DVz4rfLV74Gw"
    "noy9r4vd/yzmyZHFo5GNHP3tafSB7jV/cMu1Tz597dPMdV9/6Lpvc9d/f3X9/5i+4H9B+DV/"
    "hRM8kYRjL/Nir0uRAkxVLeqfEnHnrfF3PvzCoZe436NP3oseTb34CfjGr1o3fqP3kr+AGTjN"
    "IH0m8ghz3Y8YPJ2iH0+95PH0K2Mvuz2U4W/NlPqZe2Ks8Qhr9bOd/k3vDeUmX839Zijvb/Kr"
    "WwufDL38s7Gbn3jbzV985OavvO0Vzzz+iu+kX/Xcrbegv3XLtR/6By962a3Z+269+Ybbyr93"
    "m3Lfq2sfes30zp/78J2372/4hT+67xeeuuGOb93wiz+675cgkrtK5a4ecNEnuOtJ/oa384kt"
    "n7qtyA6Khbff+bpP3XkHIhQHwt0/FqqqaD4hNvxSTyi/j5Q+NJA+QVYe+HHl3z1x96OZez7v"
    "3/NV4Ze//qlf/u7gH/2ElK9GlRt2yo1U9fav/RMhUKt/rdU/rb8bNfrvMLyv1R7WfuVJ5w3P"
    "vPpXv8/WI5+pX/eTemxuvehPrXSpcdO88Q/nb+RfY4v/wVZe49TDv/aeP/u17r413bc/Ouw8"
    "Nvz1L8Xv/Y/vvPeZ+Ju/9843/+Vn/vlVH37L9Te9lf7tt91y17/g3/f2yuvfUbvrnW/+t+/6"
    "4Avf89hrf+Ppm/71t67uIocuXu698NBLjfqvyw3uWgzuzrnGM+4bF8N7E6P7RqMPJMYfwSa/"
    "m7v/98vvf/L33/907gNff+YDUH5K/o3HLD8k/ktfyX/4/ieXD40/+uXxx763/Hhosrq2sGYq"
    "m5tOm9c89Vv87VvxtFVOu/dED+Pbj4sfHB8o/M4XJr/znysP/nntd/9n8iHkmoeTb3qk8qZP"
    "t//gM5uX/+ETL/9c5A8fve6jj73o2j/irv386+/5wuRLT26++dQj7//jR7/0pa9c+yfUHV+9"
    "9br/dOeXv/aWNzyz+tg3//i6Z5H3Pou/8jsvuf67N7/ye8WP/xf1F//Mecn3Bx/8/gdf8ueL"
    "j//g8Qf/8lv//r/B/+yH17zgr3Kv+uvGq55bvuBv/zfgcmdU")
# name: rows, values of a row, what the numbers mean, start of the SHA-256 of all
# values as bytes
TABLES = {"IQ2_XXS": (256, 8, (8, 25, 43), "05826b5d3e472a3a"),
          "IQ2_XS": (512, 8, (8, 25, 43), "06e47aaca60b4dc1"),
          "IQ2_S": (1024, 8, (8, 25, 43), "e1aa1473412b0552"),
          "IQ1": (2048, 8, (-1, 0, 1), "07540ffc1aeaf6ad"),
          "IQ3_XXS": (256, 4, (4, 12, 20, 28, 36, 44, 52, 62),
                      "46e35f5a997efdee"),
          "IQ3_S": (512, 4, (1, 3, 5, 7, 9, 11, 13, 15), "bd1af4945a1717c6")}


def unpack_tables():
    raw, tables = zlib.decompress(base64.b64decode(ROWS)), {}
    for name, (rows, width, meanings, digest) in TABLES.items():
        bits = 2 if len(meanings) == 3 else 3
        size = rows * width * bits // 8
        number, raw = int.from_bytes(raw[:size], "little"), raw[size:]
        values = [meanings[number >> bits * i & (1 << bits) - 1]
                  for i in range(rows * width)]
        found = hashlib.sha256(bytes(v & 255 for v in values)).hexdigest()
        assert found.startswith(digest), name
        tables[name] = [values[i:i + width]
                        for i in range(0, len(values), width)]
    return tables


GRID = unpack_tables()


def half(raw, at):
    return struct.unpack_from("<e", raw, at)[0]


def halves(raw):
    """Numbers of 4 bits in order: the lower half of each byte is first."""
    return [part for b in raw for part in (b & 15, b >> 4)]


def signs(number, count=8):
    return [-1 if number >> i & 1 else 1 for i in range(count)]


def even_signs(seven):
    """Eight signs, the last of which makes the minuses an even number."""
    found = signs(seven, 7)
    return found + [1 if found.count(-1) % 2 == 0 else -1]


def times(*lists):
    return [a * b for a, b in zip(*lists)]


def flat(lists):
    return [v for one in lists for v in one]


def decode(kind, raw):
    """The values of one block, in double precision."""
    if kind in NUMBERS:
        return [float(struct.unpack(NUMBERS[kind], raw)[0])]
    if kind == "Q8_1":
        return [half(raw, 0) * q for q in struct.unpack("<32b", raw[4:])]
    if kind == "Q8_K":
        scale, *quants = struct.unpack("<f256b", raw[:260])
        return [scale * q for q in quants]
    if kind == "TQ2_0":
        return [half(raw, 64) * ((b >> shift & 3) - 1) for at in (0, 32)
                for shift in (0, 2, 4, 6) for b in raw[at:at + 32]]
    if kind == "TQ1_0":
        out = []
        for first, last, digits in ((0, 32, 5), (32, 48, 5), (48, 52, 4)):
            for place in range(digits):
                out += [half(raw, 52) * ((b * 3 ** place % 256) * 3 // 256 - 1)
                        for b in raw[first:last]]
        return out
    if kind == "IQ4_XS":
        d, high = struct.unpack_from("<eH", raw)
        scales = [(low | (high >> 2 * i & 3) << 4) - 32
                  for i, low in enumerate(halves(raw[4:8]))]
        out = []
        for i, scale in enumerate(scales):
            part = raw[8 + 16 * i:24 + 16 * i]
            out += [d * scale * STEPS[q]
                    for q in [b & 15 for b in part] + [b >> 4 for b in part]]
        return out
    if kind == "IQ2_XXS":
        out = []
        for at in range(2, 66, 8):
            rows, rest = struct.unpack_from("<4sI", raw, at)
            scale = half(raw, 0) * (0.5 + (rest >> 28)) * 0.25
            for i, row in enumerate(rows):
                out += [scale * v for v in times(
                    GRID[kind][row], even_signs(rest >> 7 * i & 127))]
        return out
    if kind == "IQ2_XS":
        scales = halves(raw[66:74])
        return [half(raw, 0) * (0.5 + scales[i // 2]) * 0.25 * v
                for i, q in enumerate(struct.unpack_from("<32H", raw, 2))
                for v in times(GRID[kind][q % 512], even_signs(q // 512))]
    if kind == "IQ2_S":
        scales = halves(raw[74:82])
        above = [b >> s & 3 for b in raw[66:74] for s in (0, 2, 4, 6)]
        return [half(raw, 0) * (0.5 + scales[i // 2]) * 0.25 * v
                for i in range(32)
                for v in times(GRID[kind][raw[2 + i] + 256 * above[i]],
                               signs(raw[34 + i]))]
    if kind == "IQ3_XXS":
        out = []
        for i, rest in enumerate(struct.unpack_from("<8I", raw, 66)):
            rows = flat(GRID[kind][q] for q in raw[2 + 8 * i:10 + 8 * i])
            turns = flat(even_signs(rest >> s & 127) for s in (0, 7, 14, 21))
            out += [half(raw, 0) * (0.5 + (rest >> 28)) * 0.5 * v
                    for v in times(rows, turns)]
        return out
    if kind == "IQ3_S":
        above = [b >> i & 1 for b in raw[66:74] for i in range(8)]
        rows = flat(GRID[kind][q + 256 * h] for q, h in zip(raw[2:66], above))
        turns = flat(signs(b) for b in raw[74:106])
        scales = halves(raw[106:110])
        return [half(raw, 0) * (1 + 2 * scales[i // 32]) * v
                for i, v in enumerate(times(rows, turns))]
    if kind == "IQ1_S":
        out = []
        for i, rest in enumerate(struct.unpack_from("<8H", raw, 34)):
            scale = half(raw, 0) * (2 * (rest >> 12 & 7) + 1)
            shift = -0.125 if rest & 0x8000 else 0.125
            for j in range(4):
                row = raw[2 + 4 * i + j] + 256 * (rest >> 3 * j & 7)
                out += [scale * (v + shift) for v in GRID["IQ1"][row]]
        return out
    if kind == "IQ1_M":
        words = struct.unpack_from("<4H", raw, 48)
        d = half(struct.pack("<H", sum((w >> 12) << 4 * i
                                       for i, w in enumerate(words))), 0)
        scales = [w >> s & 7 for w in words for s in (0, 3, 6, 9)]
        return [d * (2 * scales[i // 2] + 1) * (v - 0.125 if h & 8 else v + 0.125)
                for i, h in enumerate(halves(raw[32:48]))
                for v in GRID["IQ1"][raw[i] + 256 * (h & 7)]]
    raise ValueError(kind)


def encode(kind, values, rng):
    """A random block, whose largest value is about that of `values`."""
    if kind in NUMBERS:
        value = values[0] if kind == "F64" else round(values[0])
        return struct.pack(NUMBERS[kind], value)
    size = max(abs(v) for v in values) or 1.0
    body = bytearray(rng.randrange(256) for _ in range(TYPES[kind][2]))
    if kind == "Q8_K":
        struct.pack_into("<f", body, 0, size / 128)
        return bytes(body)
    steps = {"Q8_1": 128, "IQ1_S": 17, "IQ1_M": 17, "IQ2_XXS": 167,
             "IQ2_XS": 167, "IQ2_S": 167, "IQ3_XXS": 481, "IQ3_S": 465,
             "IQ4_XS": 4064, "TQ1_0": 1, "TQ2_0": 1}
    d = struct.pack("<e", size / steps[kind])
    if kind == "IQ1_M":
        for i in range(4):
            four = int.from_bytes(d, "little") >> 4 * i & 15
            body[49 + 2 * i] = body[49 + 2 * i] & 15 | four << 4
    else:
        at = {"TQ1_0": 52, "TQ2_0": 64}.get(kind, 0)
        body[at:at + 2] = d
    return bytes(body)


def every_row(kind, rng):
    """Blocks in which each row of the type's table is met."""
    table = "IQ1" if kind.startswith("IQ1") else kind
    count, width = TABLES[table][:2]
    rows = list(range(count))
    rng.shuffle(rows)
    out = []
    for first in range(0, count, 256 // width):
        part = rows[first:first + 256 // width]
        body = bytearray(encode(kind, [1.0], rng))
        low = bytes(row & 255 for row in part)
        if kind == "IQ2_XXS":
            for i in range(8):
                body[2 + 8 * i:6 + 8 * i] = low[4 * i:4 * i + 4]
        elif kind == "IQ2_XS":
            struct.pack_into("<32H", body, 2,
                             *(row | rng.randrange(128) << 9 for row in part))
        elif kind == "IQ1_M":
            body[:32] = low
            for i, row in enumerate(part):
                shift = i % 2 * 4
                body[32 + i // 2] &= ~(7 << shift)
                body[32 + i // 2] |= (row >> 8) << shift
        else:
            body[2:2 + len(low)] = low
        if kind == "IQ2_S":
            for i in range(8):
                body[66 + i] = sum((part[4 * i + j] >> 8) << 2 * j
                                   for j in range(4))
        if kind == "IQ3_S":
            for i in range(8):
                body[66 + i] = sum((part[8 * i + j] >> 8) << j
                                   for j in range(8))
        if kind == "IQ1_S":
            for i in range(8):
                rest = rng.randrange(16) << 12
                rest |= sum((part[4 * i + j] >> 8) << 3 * j for j in range(4))
                struct.pack_into("<H", body, 34 + 2 * i, rest)
        out.append(bytes(body))
    return out
